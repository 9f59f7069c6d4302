# Spark's master and workers: pip's pyspark holds a whole Spark, so the version is the driver's by construction.
FROM python:3.11.14-slim-bookworm

# Slim images lack the folder for manual pages, without which Java's package may fail to configure.
RUN mkdir -p /usr/share/man/man1 \
    && apt-get update \
    && apt-get install -y --no-install-recommends openjdk-17-jre-headless \
    && apt-get clean \
    && rm -rf /var/lib/apt/lists/*
# The uid and gid of Airflow's image: what a driver writes to the shared volume, an executor can change, and back.
RUN useradd --uid 50000 --gid 0 --create-home --shell /bin/bash spark \
    && install -d -o 50000 -g 0 -m 2775 /opt/sparkddp/shared \
    && install -d -o 50000 -g 0 -m 0770 /opt/spark/work

WORKDIR /opt/sparkddp/src
COPY pyproject.toml README.md constraints.txt ./
COPY airflow_provider_sparkddp/ airflow_provider_sparkddp/
COPY dags/examples/ dags/examples/
COPY docker/install.sh docker/install.sh
ARG TORCH_INDEX_URL=""
RUN PIP_ROOT_USER_ACTION=ignore bash docker/install.sh cluster

COPY docker/health.py /opt/sparkddp/bin/health.py
USER spark
WORKDIR /opt/spark/work
