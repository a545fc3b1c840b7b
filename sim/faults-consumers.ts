// Planted faults of consumers, cron jobs and events from outside.
export const CONSUMER_FAULTS = [
  {
    name: 'a consumer runs before the commit that settles its run',
    seed: 6,
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
  {
    name: 'a time of a cron job begins twice',
    seed: 27,
    file: 'src/cron/run-tools.ts',
    find: 'const session = tickIdOf(job, args)',
    replace: 'const session = `${tickIdOf(job, args)}.${Math.random()}`',
  },
  {
    name: 'a cron job begins a run before its time',
    seed: 26,
    file: 'src/cron/cron-job.ts',
    find: 'const times = lastTimes(job, from, now)',
    replace: 'const times = lastTimes(job, from, now + MINUTE_MS)',
  },
  {
    name: 'a missed time of a cron job is left out without a reason',
    seed: 27,
    file: 'src/cron/cron-job.ts',
    find: 'const noted = noteTicks(state, leftOut(left, MISSED_TEXTS[job.missed]))',
    replace: 'const noted = state',
  },
  {
    name: 'a delivery is acknowledged before it is on disk',
    seed: 3,
    file: 'src/triggers/accept-trigger.ts',
    find: 'await commitWithRetry(services, [charges.length > 0 ? { ...created, charges } : created, message])',
    replace:
      'commitWithRetry(services, [charges.length > 0 ? { ...created, charges } : created, message]).catch(() => [])',
  },
  {
    name: 'an event that comes twice is two sessions',
    seed: 3,
    file: 'src/triggers/accept-trigger.ts',
    find: "['key', dedupeKey]",
    replace: "['key', dedupeKey, random.id()]",
  },
  {
    name: 'an event that two processes write at once is two messages',
    seed: 11,
    file: 'src/triggers/accept-trigger.ts',
    find: '{ id: MESSAGE_ID, metadata }',
    replace: '{ id: random.id() }',
  },
  {
    name: 'a round is graded twice',
    seed: 11,
    file: 'src/outcomes/take-step.ts',
    find: "const asked: Write = { session: grader, lane: 'inbox', events: [redactor.body(question)] }",
    replace:
      "const asked: Write = { session: grader, lane: 'inbox', events: [redactor.body(question), redactor.body({ ...question, id: `${question.id}:again` })] }",
  },
  {
    name: 'a round begins after a stop',
    seed: 11,
    file: 'src/sessions/look/read-pursuit.ts',
    find: 'return stops && stoppedAt === null ?',
    replace: 'return stops && stoppedAt === 0 ?',
  },
] as const
