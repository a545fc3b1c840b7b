// Schemas of the user that check asynchronously and never answer. The clock is moved by hand.
import { describe, expect, it, onTestFinished } from 'vitest'
import { defineTool, Harness, type HarnessOptions, memory, scripted, type Step } from '../../src/index.ts'
import { FakeClock } from '../models/fake-clock.ts'

const good = { city: 'Oslo' }
const answer = { calls: [{ tool: 'final_result', args: good }] }
const shape = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }

type Checked = { readonly value: unknown }

/** A schema that answers this often, and then never again. */
function hangs(after = 0) {
  let asked = 0
  const validate = (value: unknown): Promise<Checked> =>
    ++asked <= after ? Promise.resolve({ value }) : new Promise<Checked>(() => {})
  return { '~standard': { validate, jsonSchema: { input: () => shape } } }
}

function make(script: readonly Step[], options: Partial<HarnessOptions> = {}) {
  const clock = new FakeClock()
  let asked = 0
  const model = scripted(() => script[asked++] ?? 'No more.')
  const harness = new Harness({ ...options, model, system: { clock }, store: memory({ clock }) })
  onTestFinished(() => harness.close())
  return { harness, clock, asked: () => asked }
}

/** Slowly: what is loaded meanwhile takes real time. */
async function during<T>(clock: FakeClock, work: Promise<T>): Promise<T> {
  let done = false
  void work.finally(() => {
    done = true
  })
  for (let n = 0; n < 200 && !done; n++) {
    await new Promise((resolve) => setTimeout(resolve, 20))
    clock.advance(2_000)
  }
  expect(done).toBe(true)
  return work
}

const late = { status: 'failed', stopReason: 'output_validation_failed', failure: { kind: 'Timeout' } }

describe('a schema that never answers', () => {
  it('B-BOUND-8: the schema of an agent ends its run after a minute, the model is not asked again, and its answer stays in the log', async () => {
    const { harness, clock, asked } = make([answer], { output: { schema: hangs() } })
    const session = await harness.open()
    const result = await during(clock, session.run('Where?'))
    expect(result).toMatchObject(late)
    expect(clock.now()).toBeLessThan(90_000)
    expect(asked()).toBe(1)
    const { events } = await session.events()
    expect(events.find((event) => event.type === 'agent.message')).toMatchObject({ calls: [{ args: good }] })
    expect(await during(clock, session.run('Again?'))).toMatchObject({ stopReason: 'output_validation_failed' })
  })

  it("B-BOUND-8: the caller's schema, when it parses the answer of a run that is over, fails the result and not the run", async () => {
    const { harness, clock } = make([answer, 'Goes on.'])
    const session = await harness.open()
    const result = await during(clock, session.run('Where?', { output: { schema: hangs(1) } }))
    expect(result).toMatchObject(late)
    const { events } = await session.events()
    expect(events.find((event) => event.type === 'run.settled')).toMatchObject({ outcome: { type: 'completed' } })
    expect(await during(clock, session.run('Go on.'))).toMatchObject({ status: 'completed', text: 'Goes on.' })
  })

  it("B-BOUND-8: the caller's schema ends the run when it does not check the reply", async () => {
    const { harness, clock, asked } = make([answer])
    expect(await during(clock, harness.run('Where?', { output: { schema: hangs() } }))).toMatchObject(late)
    expect(asked()).toBe(1)
  })

  it('B-BOUND-8: the schema of a tool refuses its call, which does not run, and the calls beside it go on', async () => {
    const ran: string[] = []
    const named = (name: string, input: ReturnType<typeof hangs>) =>
      defineTool({ name, description: name, input, effect: 'read', execute: () => ran.push(name) && `${name} ran` })
    const tools = [named('stuck', hangs()), named('fine', hangs(9))]
    const calls = [
      { tool: 'stuck', args: good },
      { tool: 'fine', args: good },
    ]
    const { harness, clock } = make([{ calls }, 'Done.'], { tools })
    const result = await during(clock, harness.run('Go.'))
    expect(result).toMatchObject({ status: 'completed', text: 'Done.' })
    expect(ran).toEqual(['fine'])
    expect(result.calls.map(({ status, content }) => [status, content])).toEqual([
      [
        'error',
        'The arguments of "stuck" could not be checked, so it was not run: the check took longer than 60 seconds.',
      ],
      ['ok', 'fine ran'],
    ])
  })
})
