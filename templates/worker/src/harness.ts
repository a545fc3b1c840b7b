// What every process here shares: the store, the agents, the jobs and the sources of deliveries. A process drives a session only if it
// has its agent, so all of them are made by this one function.
import { appendFileSync } from 'node:fs'
import { defineTool, Harness, scripted, sqlite } from 'terret'
import { cronPlanner } from 'terret/cron'
import { postgres } from 'terret/postgres'
import { createTriggers } from 'terret/triggers'
import { z } from 'zod'

const pageSomeone = defineTool({
  name: 'page_someone',
  description: 'Wakes the person on duty with one sentence',
  input: z.object({ text: z.string() }),
  effect: 'idempotent', // may run again under the same key, which your pager must know a second time
  execute: ({ text }, { key }) => {
    // Your pager goes here.
    appendFileSync('pages.jsonl', `${JSON.stringify({ key, text })}\n`)
    return 'Somebody is awake.'
  },
})

const OPERATOR = 'You are on call. Find out what is wrong, and wake somebody if it cannot wait.'

/** Plays the model while none is named, so that everything here runs without a key and without a network. */
const rehearsal = scripted(({ instructions, messages }) => {
  if (!instructions.includes(OPERATOR)) return 'Nothing happened today.'
  if (messages.some(({ role }) => role === 'tool')) return 'Somebody looks after it.'
  return { calls: [{ tool: 'page_someone', args: { text: 'The shop is down.' } }] }
})

/** Plays the triage: one decision about each delivery, as JSON. */
const rehearsedTriage = scripted(({ messages }) =>
  JSON.stringify(
    JSON.stringify(messages).includes('DOWN')
      ? { action: 'escalate', target_agent: 'operator', prompt: 'The shop is down.', reason: 'An outage.' }
      : { action: 'drop', reason: 'Nothing is wrong.' },
  ),
)

/** `drives`: whether this process works on sessions, or only writes to them. */
export function openHarness({ drives }: { readonly drives: boolean }) {
  const { DATABASE_URL: url, SCHEMA: schema = 'terret', MODEL: model } = process.env
  if (url === undefined) console.log('DATABASE_URL is not set: a file (worker.db) takes the place of Postgres.')
  const store = url === undefined ? sqlite('worker.db') : postgres({ url, schema })
  const harness = new Harness({
    model: model ?? rehearsal,
    instructions: 'You write short reports.',
    subagents: {
      operator: { description: 'finds out what is wrong', instructions: OPERATOR, tools: [pageSomeone] },
    },
    graphs: [cronPlanner()],
    triggers: createTriggers({
      models: [model ?? rehearsedTriage],
      sources: {
        alarms: {
          instructions: 'An alarm that says DOWN is for the operator. Everything else is noise.',
          targets: { escalate: ['operator'] },
          caps: { perMinute: 60, usdPerDay: 5 },
        },
      },
    }),
    store,
    limits: { modelRequests: 20 },
    budget: { runUsd: 0.5, dayUsd: 10 },
    worker: { drives },
    program: 'on-call',
  })
  return { harness, store }
}

/** Ends the process in order when it is told to: sessions are given back, and the next process goes on with them. */
export function onStop(stop: () => Promise<void>): void {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void stop())
}
