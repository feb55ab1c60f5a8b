#!/bin/sh
# One database and one role for each service; the passwords are secrets. Runs once, in an empty cluster.
set -eu
for name in wallet history; do
    password=$(cat "/run/secrets/${name}_password")
    psql -v ON_ERROR_STOP=1 --username "$POSTGRES_USER" -v name="$name" -v password="$password" <<'SQL'
CREATE ROLE :"name" LOGIN PASSWORD :'password';
CREATE DATABASE :"name" OWNER :"name";
REVOKE CONNECT ON DATABASE :"name" FROM PUBLIC;
SQL
done
