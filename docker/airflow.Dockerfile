# Airflow plus what its image lacks to drive Spark and PyTorch: Java, the project with [demo], PostgreSQL's drivers.
# The slim image holds no providers, so nothing argues with the versions that constraints.txt names.
FROM apache/airflow:slim-3.3.2-python3.11

USER root
# A JRE suffices: spark-submit finds `java` on PATH, hence no JAVA_HOME, whose path differs by architecture.
# Slim images lack the folder for manual pages, without which Java's package may fail to configure.
RUN mkdir -p /usr/share/man/man1 \
    && apt-get update \
    && apt-get install -y --no-install-recommends openjdk-17-jre-headless \
    && apt-get autoremove -yqq --purge \
    && apt-get clean \
    && rm -rf /var/lib/apt/lists/*
# A new named volume takes over owner and mode of the folder it is mounted on: the same here and in the Spark image.
RUN install -d -o 50000 -g 0 -m 2775 /opt/sparkddp/shared \
    && install -d -o 50000 -g 0 -m 0770 /opt/airflow/auth /opt/airflow/logs

# pip must run as the image's own user: Airflow lies in that user's virtual environment.
USER airflow
WORKDIR /opt/sparkddp/src
COPY pyproject.toml README.md constraints.txt ./
COPY airflow_provider_sparkddp/ airflow_provider_sparkddp/
COPY dags/examples/ dags/examples/
COPY docker/install.sh docker/install.sh
ARG TORCH_INDEX_URL=""
# [demo] is [all] plus the data that dags/examples trains on, read where the Spark driver runs: here.
# The drivers, synchronous and asynchronous, are what Airflow asks for by a postgresql+psycopg2:// address.
RUN bash docker/install.sh demo psycopg2-binary==2.9.13 asyncpg==0.32.0

COPY docker/health.py /opt/sparkddp/bin/health.py
COPY docker/airflow_init.py /opt/sparkddp/bin/airflow_init.py
WORKDIR /opt/airflow
