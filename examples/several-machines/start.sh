#!/bin/sh
# The same as compose.yaml without containers: on a server that runs already. PGHOST, PGPORT, PGUSER and PGPASSWORD are those of a
# superuser. Ends all it started when it is stopped, and when its server ends.
set -eu
cd "$(dirname "$0")"
work=${WORK:-$HOME}
at="${PGHOST:-127.0.0.1}:${PGPORT:-5432}/terret"
started=
trap 'code=$?; kill $started 2>/dev/null || :; wait; exit $code' EXIT
trap 'exit 0' INT TERM

sh ./roles.sh
export PGPASSWORD="$OWNER_PASSWORD"
unset PGUSER
TERRET_STORE="postgres://terret_owner@$at" terret store check
psql --no-psqlrc -q -v ON_ERROR_STOP=1 -f grants.sql "postgres://terret_owner@$at"

export PGPASSWORD="$WORKER_PASSWORD" TERRET_STORE="postgres://terret_worker@$at"
cd "$work"
for n in 1 2 3; do
  TERRET_HOME="${TERRET_HOME:-$HOME/.terret}/worker-$n" terret worker --model "${TERRET_MODEL:-offline:any}" --metrics "${METRICS_PORT:-946}$n" &
  started="$started $!"
done
terret serve --model "${TERRET_MODEL:-offline:any}" --port "${PORT:-4747}" &
started="$started $!"
wait $!
