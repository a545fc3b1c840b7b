// Planted faults of consumers.
export const CONSUMER_FAULTS = [
  {
    name: 'a consumer runs before the commit that settles its run',
    seed: 3,
    file: 'src/runtime/commit/write-commit.ts',
    find: 'await store.commit(plan.writes)',
    replace:
      'for (const { session, event } of plan.write.sends ?? []) if (session.startsWith("consumer.")) await store.commit([{ session, lane: "inbox", events: [event] }]); await store.commit(plan.writes)',
  },
  {
    name: 'a dead letter is forgotten',
    seed: 3,
    file: 'src/queues/item-queue.ts',
    find: 'dead.set(key, { key, group, data, tries, reason: result.reason, at: result.at, deaths: deaths + 1 })',
    replace: '',
  },
] as const
