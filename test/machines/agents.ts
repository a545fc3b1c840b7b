// What the workers and the main program of `npm run machines` agree on: the agents, and the bank that they pay at. The bank's book is a
// file that every payment adds a line to, also a second one of the same call: only what the log and the tool do keeps it from that.
import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { defineTool, Harness, output, scripted, type Step, type CompleteStore } from '../../src/index.ts'

/** A payment, as the bank wrote it down: the key of the call, and who asked. */
export type Payment = { readonly key: string; readonly session: string; readonly worker: string }

/** How long the bank keeps its answer back: a worker that is killed meanwhile has paid, and nobody was told. */
const ANSWER_MS = 1_500
const MODEL_MS = 300
/** For one request, in millionths of a dollar: a price of the script. */
const PRICE = 1_000
/** Longer than the database is away, so that nobody loses a session by that. */
const LEASE_MS = 10_000

export function paymentsIn(book: string): readonly Payment[] {
  const text = existsSync(book) ? readFileSync(book, 'utf8') : ''
  const whole = text.slice(0, text.lastIndexOf('\n') + 1)
  return whole
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Payment)
}

/** `who`: the worker's name. Null: it drives nothing. */
export function harnessOn(store: CompleteStore, book: string, who: string | null): Harness {
  const worker = who ?? 'nobody'
  const pay = defineTool({
    name: 'pay',
    description: 'Pays an invoice at the bank',
    input: z.object({ invoice: z.number() }),
    effect: 'once',
    approval: 'ask',
    execute: async ({ invoice }, { key, session }) => {
      appendFileSync(book, `${JSON.stringify({ key, session, worker } satisfies Payment)}\n`)
      await sleep(ANSWER_MS)
      return `Invoice ${invoice} is paid, by ${worker}.`
    },
    // The worker of this call is gone, and what it did is asked of the bank. Nothing is paid a second time.
    reconcile: ({ invoice }, { key }) => {
      const found = paymentsIn(book).find((payment) => payment.key === key)
      if (!found) return output({ ok: false, content: 'The bank has no such payment.' })
      return `Invoice ${invoice} is paid, by ${found.worker}; ${worker} found it in the book.`
    },
  })
  return new Harness({
    model: scripted((request) => stepOf(request.messages, worker)),
    tools: [pay],
    store,
    secrets: {},
    budget: { dayUsd: 5 },
    worker: { leaseMs: LEASE_MS, ...(who === null ? {} : { id: who }), drives: who !== null },
  })
}

type Messages = Parameters<Extract<Parameters<typeof scripted>[0], (...all: never) => unknown>>[0]['messages']

/** Asks for the payment until the bank has it, and then says so. */
function stepOf(messages: Messages, worker: string): Step {
  const told = messages.map((message) => JSON.stringify(message)).join('\n')
  const paid = messages.some((message) => message.role === 'tool' && JSON.stringify(message).includes('is paid'))
  const cost = { usage: { inputTokens: 100, outputTokens: 20 }, cost: PRICE, delayMs: MODEL_MS }
  if (paid) return { ...cost, text: `${worker}: done.` }
  const invoice = Number(/Pay invoice (\d+)/.exec(told)?.[1])
  return { ...cost, text: `${worker}: may I pay it?`, calls: [{ tool: 'pay', args: { invoice } }] }
}
