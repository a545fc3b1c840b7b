#!/bin/sh
# The database, and two roles: one that owns the tables, and one that works with them. Run once, as a superuser of an empty server:
# the image of Postgres does so by itself. PGHOST, PGPORT, PGUSER and PGPASSWORD say where.
set -eu
psql --no-psqlrc -v ON_ERROR_STOP=1 -v owner="$OWNER_PASSWORD" -v worker="$WORKER_PASSWORD" -d postgres <<'SQL'
create role terret_owner login password :'owner';
create role terret_worker login password :'worker';
create database terret owner terret_owner encoding 'UTF8' template template0;
revoke all on database terret from public;
grant connect on database terret to terret_worker;
SQL
