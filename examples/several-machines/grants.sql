-- What a worker may do with the tables of a store: read, add, and change all but events. Run as their owner, after they were made
-- and after each update of Terret that changed them.
grant usage on schema terret to terret_worker;
grant select, insert, update, delete on all tables in schema terret to terret_worker;
grant usage, select on all sequences in schema terret to terret_worker;
-- Events are added, and deleted only with a session whose removal is logged: triggers see to that, and only the owner could drop these.
revoke update, delete, truncate on terret.events from terret_worker;
-- Sessions are removed by the function that logs the removal, and in no other way.
revoke insert, update, delete, truncate on terret.removals from terret_worker;
grant execute on function terret.remove_sessions to terret_worker;
-- The parts of that table are reached through it alone.
do $$ declare part regclass; begin
  for part in select inhrelid::regclass from pg_inherits where inhparent = 'terret.events'::regclass loop
    execute format('revoke all on %s from terret_worker', part);
  end loop;
end $$;
