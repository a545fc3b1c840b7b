// The tables of a Postgres store, as SQL without logic. `~` before a name stands for the schema of the tables
// (schema-texts.ts). Ids are ordered by their bytes, as in every store. Bodies are text, because jsonb changes its
// input. Sums are signed 32 bits.

/** Increased with each released schema. A newer one is refused; an older one is upgraded when the store is opened. */
export const SCHEMA_VERSION = 3

/** How many sessions share one events table. A table can be detached as a whole and kept elsewhere. */
export const ROOM = 100_000

/** Advisory locks of one schema: for migrations, for blobs that are referred to or removed, for new partitions. */
export const lockKey = (kind: 'schema' | 'blobs' | 'room'): string =>
  `${{ schema: 1, blobs: 2, room: 3 }[kind]}, hashtext('~')`

const ID = 'text collate "C"'

/**
 * `v` increases with each change of the row: a commit is written only if the row is still the one it was planned on.
 * `hour` belongs to `at` and serves lists by newest: an index on `at` would be written with every commit. `taken` names
 * the request that took the session. `facts_sum` is the checksum of the log's facts about the session: agent, time,
 * title and owner. Rows of version 1 have none.
 */
const SESSIONS = `
  create sequence ~numbers;
  create table ~sessions (
    n bigint primary key, v bigint not null, id ${ID} not null unique, seq int not null, at float8 not null, sum int not null,
    epoch bigint not null, worker ${ID}, due float8, urgent boolean not null, tries int not null, trouble text,
    status text not null, root ${ID} not null, agent ${ID} not null, hour bigint not null, card text not null,
    tokens float8 not null, created float8 not null, title text, owner ${ID}, folder ${ID}, parent ${ID}, taken text, facts_sum int
  ) with (fillfactor = 60);
  create index sessions_due on ~sessions (urgent desc, due, n) where worker is null and due is not null;
  create index sessions_worker on ~sessions (worker) where worker is not null;
  create index sessions_status on ~sessions (status, id);
  create index sessions_root on ~sessions (root, id);
  create index sessions_hour on ~sessions (hour, id);
  create index sessions_folder on ~sessions (folder, id) where folder is not null;
  create index sessions_parent on ~sessions (parent, id) where parent is not null;
  create index sessions_owner on ~sessions (owner) where owner is not null;
  create table ~labels (name ${ID} not null, value ${ID} not null, n bigint not null, primary key (name, value, n));
  create index labels_n on ~labels (n);
  create table ~finds (n bigint primary key, text ${ID} not null);
  create table ~forks (n bigint primary key, origin ${ID} not null);
  create index forks_origin on ~forks (origin);
`

/**
 * Sessions that may wait for a person: the rule of `mayWait` (view/pending-calls.ts) as a column generated from the
 * row. A card's text is JSON without spaces, and quotes inside strings are escaped, so these texts can only be its own
 * fields. It is a column because an index with a condition on the card itself would be written with every commit.
 */
const WAITING = `
  alter table ~sessions add column waiting boolean not null generated always as (
    status = 'requires_action' or strpos(card, '"asks":[]') = 0 or strpos(card, '"waits":[]') = 0
    or (status = 'idle' and strpos(card, '"outcome":"limit"') > 0)) stored;
  create index sessions_waiting on ~sessions (id) where waiting;
`

const EVENTS = `
  create table ~events (n bigint not null, seq int not null, sum int not null, body text not null, primary key (n, seq))
    partition by range (n);
  create table ~inbox (n bigint not null, id ${ID} not null, seq int not null, primary key (n, id));
  create table ~snapshots (
    n bigint not null, seq int not null, own boolean not null, version float8 not null, sum int not null, body text not null,
    primary key (n, seq)
  );
  create table ~removals (
    n bigint primary key, session ${ID} not null, root ${ID} not null, epoch bigint not null, agent ${ID} not null, events int not null,
    bytes float8 not null, at float8 not null, by text not null
  );
  create index removals_session on ~removals (session);
  create index removals_at on ~removals (at, n);
`

const REST = `
  create table ~workers (
    id ${ID} primary key, until float8 not null, ttl float8 not null, address text, host ${ID}, pid float8, started float8
  ) with (fillfactor = 60);
  create table ~accounts (
    id ${ID} primary key, cap float8, held float8 not null, spent float8 not null, assumed float8 not null
  ) with (fillfactor = 60);
  create table ~holds (key ${ID} primary key, amount float8 not null, accounts text not null, session ${ID} not null);
  create index holds_session on ~holds (session);
  create table ~blobs (hash ${ID} primary key, media text not null, sum int not null, data bytea not null);
  create table ~blob_refs (hash ${ID} not null, n bigint not null, primary key (hash, n));
  create index blob_refs_n on ~blob_refs (n);
`

/** No program may change an event or a removal, or delete an event of a session that is not among the removals. */
const TRIGGERS = `
  create function ~keep_event() returns trigger language plpgsql as $fn$
    begin
      raise exception 'events are never changed';
    end $fn$;
  create function ~keep_log() returns trigger language plpgsql as $fn$
    begin
      if exists (select 1 from ~removals where n = old.n) then
        return old;
      end if;
      raise exception 'events are never deleted';
    end $fn$;
  create trigger events_keep before update on ~events for each row execute function ~keep_event();
  create trigger events_stay before delete on ~events for each row execute function ~keep_log();
  create trigger events_whole before truncate on ~events for each statement execute function ~keep_event();
`
const REMOVALS_STAY = `
  create function ~keep_removal() returns trigger language plpgsql as $fn$
    begin
      raise exception 'removals are never changed';
    end $fn$;
  create trigger removals_keep before update or delete on ~removals for each row execute function ~keep_removal();
  create trigger removals_whole before truncate on ~removals for each statement execute function ~keep_removal();
`

/** Attached, not created as a partition: that would block every reader and writer of the other partitions. */
const MAKE_ROOM = `
  create function ~make_room(room bigint) returns void language plpgsql security definer set search_path = pg_catalog, pg_temp as $fn$
    declare part text := 'events_' || room;
    begin
      perform pg_advisory_xact_lock(${lockKey('room')});
      if exists (select 1 from pg_class c join pg_namespace s on s.oid = c.relnamespace where s.nspname = '~schema~' and c.relname = part) then
        return;
      end if;
      execute format('create table ~%I (like ~events including all)', part);
      execute format('create trigger events_whole before truncate on ~%I for each statement execute function ~keep_event()', part);
      execute format('alter table ~events attach partition ~%I for values from (%s) to (%s)', part, room * ${ROOM}, (room + 1) * ${ROOM});
    end $fn$;
`

/**
 * Removes sessions if they are still as planned. It is one function, because each of its statements must see what was
 * committed while it waited for its locks. It locks rows in the order of all commits: sessions, accounts, holds. It
 * runs with the rights of the tables' owner, so that a worker needs no right to write removals or to delete events.
 */
const REMOVE = `
  create or replace function ~remove_sessions(
    gone bigint[], versions bigint[], root_id text, now float8, by_whom text, hold_keys text[],
    account_ids text[], held_less float8[], spent_more float8[], assumed_more float8[], own_accounts text[]
  ) returns setof ~removals language plpgsql security definer set search_path = pg_catalog, pg_temp as $fn$
    declare
      each bigint;
      size float8;
      moved int;
    begin
      perform pg_advisory_xact_lock(${lockKey('blobs')});
      perform 1 from ~sessions s where s.n = any(gone) order by s.id for update;
      select count(*) into moved from unnest(gone, versions) u(n, v) join ~sessions s on s.n = u.n and s.v = u.v;
      perform 1 / (moved = cardinality(gone))::int;
      perform 1 / (not exists (select 1 from ~sessions s where s.root = root_id and s.n <> all(gone)))::int;
      perform 1 / (not exists (select 1 from ~forks f join ~sessions o on o.id = f.origin
        where o.n = any(gone) and f.n <> all(gone)))::int;
      update ~accounts a set held = a.held - u.held, spent = a.spent + u.spent, assumed = a.assumed + u.assumed
        from unnest(account_ids, held_less, spent_more, assumed_more) u(id, held, spent, assumed) where a.id = u.id;
      delete from ~holds where key = any(hold_keys);
      get diagnostics moved = row_count;
      perform 1 / (moved = cardinality(hold_keys))::int;
      delete from ~accounts where id = any(own_accounts);
      foreach each in array gone loop
        select coalesce(sum(octet_length(e.body)), 0) into size from ~events e where e.n = each;
        with alone as (
          delete from ~blobs b where b.hash in (select r.hash from ~blob_refs r where r.n = each)
            and not exists (select 1 from ~blob_refs o where o.hash = b.hash and o.n <> each)
            returning octet_length(b.data) as bytes
        ) select size + coalesce(sum(bytes), 0) into size from alone;
        delete from ~blob_refs r where r.n = each;
        insert into ~removals select s.n, s.id, root_id, s.epoch, s.agent, s.seq, size, now, by_whom from ~sessions s where s.n = each;
        delete from ~sessions s where s.n = each;
      end loop;
      delete from ~events e where e.n = any(gone);
      delete from ~inbox i where i.n = any(gone);
      delete from ~snapshots p where p.n = any(gone);
      delete from ~finds f where f.n = any(gone);
      delete from ~labels l where l.n = any(gone);
      delete from ~forks f where f.n = any(gone);
      return query select r.* from ~removals r where r.n = any(gone);
    end $fn$;
  revoke execute on function ~remove_sessions from public;
`

export const SCHEMA = `
  create table ~meta (version int not null, store text not null);
  ${SESSIONS}${WAITING}${EVENTS}${REST}${TRIGGERS}${REMOVALS_STAY}${MAKE_ROOM}${REMOVE}
  insert into ~meta (version, store) values (${SCHEMA_VERSION}, gen_random_uuid()::text);
`

/** The upgrade from each version to the next, by the version of the tables. */
export const UPGRADES: Readonly<Record<number, string>> = {
  1: `alter table ~sessions add column facts_sum int;
    ${REMOVALS_STAY}${REMOVE}
    update ~meta set version = 2;`,
  2: `${WAITING} update ~meta set version = 3;`,
}
