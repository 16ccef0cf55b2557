#!/bin/sh
# Python as Spark starts it on this machine. Spark puts archives of PySpark before what is installed,
# and Python compiles what it takes from an archive anew at each start, which is three quarters of it.
set -f
kept=
IFS=:
for place in $PYTHONPATH; do
    case $place in
        */python/lib/pyspark.zip | */python/lib/py4j-*.zip | */jars/spark-core_*.jar) ;;
        *) kept=${kept:+$kept:}$place ;;
    esac
done
PYTHONPATH=$kept
# The one beside a stream has to connect within ten seconds, so it does that first.
if [ "${2-}" = pyspark.sql.streaming.python_streaming_source_runner ]; then
    set -- -m penstock.pipeline.stream_python
fi
exec "$PYSPARK_PENSTOCK_PYTHON" "$@"
