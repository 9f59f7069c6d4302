#!/usr/bin/env bash
# Is there a Java that Spark 4.2 runs on? If not: one line that mends it; on Debian as root it is installed.
set -u
java=${JAVA_HOME:+$JAVA_HOME/bin/}java
version=$("$java" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1)
if [ -n "$version" ] && [ "$version" -ge 17 ]; then exit 0; fi
found=${version:+Java $version is too old}
if [ -f /etc/debian_version ] && [ "$(id -u)" = 0 ] && [ -z "${JAVA_HOME:-}" ]; then
  echo "${found:-No Java found}: installing openjdk-17-jre-headless (Spark 4.2 needs Java 17 or newer)"
  (apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq openjdk-17-jre-headless) >/dev/null 2>&1
  java -version >/dev/null 2>&1 && exit 0
fi
echo "${found:-No Java found}: Spark 4.2 needs Java 17 or newer. Install it: sudo apt-get install openjdk-17-jre-headless (Debian), brew install openjdk@17 (macOS); then set JAVA_HOME if it isn't on PATH." >&2
exit 1
