// A session that changes its provider and comes back, over one store and one strict server: its own reasoning returns to each
// provider as it came, the others' is told in words, and nothing is ever refused.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Chaos, ChaosReply, ChaosRequest, ChaosModelReply, Dialect } from '../../src/testing/index.ts'
import {
  type Harness,
  type Input,
  model,
  type Result,
  type SessionHandle,
  type CompleteStore,
  type Tool,
  ToolFailure,
} from '../../src/index.ts'
import {
  bodyOf,
  chaosOf,
  conversation,
  DIALECTS,
  harnessOf,
  hosted,
  KEY,
  noting,
  STORAGES,
  storeOf,
} from './hosted-stage.ts'
import { runs } from '../runs.ts'

type Fields = Readonly<Record<string, unknown>>

type Host = NonNullable<Parameters<typeof hosted>[2]>
type Hosts = Partial<Readonly<Record<Dialect, Host>>>

/** One harness for each provider, on one store. */
class Providers {
  readonly harnesses: Readonly<Record<Dialect, Harness>>
  readonly #queue: ChaosReply[] = []
  readonly chaos: Chaos
  #thought = 0

  private constructor(chaos: Chaos, store: CompleteStore, queue: ChaosReply[], hosts: Hosts) {
    this.chaos = chaos
    this.#queue = queue
    const make = (dialect: Dialect): Harness => {
      return harnessOf({ model: hosted(chaos, dialect, hosts[dialect]), store, tools: tools() })
    }
    this.harnesses = { messages: make('messages'), responses: make('responses'), chat: make('chat') }
  }

  static async open(store: CompleteStore, hosts: Hosts = {}): Promise<Providers> {
    const queue: ChaosReply[] = []
    const chaos = await chaosOf(() => queue.shift() ?? 'Fine.')
    return new Providers(chaos, store, queue, hosts)
  }

  session(dialect: Dialect, id: string): SessionHandle {
    return this.harnesses[dialect].session(id)
  }

  /** Sends a message to that provider, which gives these replies. */
  async run(dialect: Dialect, id: string, input: Input, ...replies: readonly ChaosReply[]): Promise<Result> {
    this.#queue.push(...replies)
    const result = await this.session(dialect, id).run(input)
    this.#queue.length = 0
    return result
  }

  queue(...replies: readonly ChaosReply[]): void {
    this.#queue.push(...replies)
  }

  clear(): void {
    this.#queue.length = 0
  }

  /** A new signed thought, different from all before. */
  thought(redacted?: true): Exclude<ChaosModelReply['reasoning'], string | undefined> {
    const n = this.#thought++
    const signed = { text: `thought-${n}`, signature: seal(`signature ${n}`), encrypted: seal(`encrypted ${n}`) }
    return redacted ? { ...signed, redacted } : signed
  }

  get refused(): readonly string[] {
    return this.chaos.requests.flatMap(({ refused }) => (refused === undefined ? [] : [refused]))
  }
}

function seal(text: string): string {
  return Buffer.from(`seal of ${text}`).toString('base64')
}

function tools(): readonly Tool[] {
  const fails = noting('fail', {
    execute: () => {
      throw new ToolFailure('Unavailable', 'Nobody is there.')
    },
  })
  return [noting('look').tool, fails.tool]
}

const look = (city: string, tool = 'look') => ({ tool, args: { city } })
const PICTURE = { type: 'image', media: 'image/png', data: 'iVBORw0KGgo=' } as const

/** The provider's own form of the thoughts in a request. */
function native(request: ChaosRequest | undefined): readonly string[] {
  return conversation(request).flatMap((message): string[] => {
    if (message['type'] === 'reasoning') return [String(message['encrypted_content'])]
    const details = (message['reasoning_details'] ?? []) as readonly Fields[]
    const content = Array.isArray(message['content']) ? (message['content'] as readonly Fields[]) : []
    const signed = content.flatMap((block) => {
      if (block['type'] === 'thinking') return [String(block['signature'])]
      return block['type'] === 'redacted_thinking' ? [String(block['data'])] : []
    })
    return [...details.map((detail) => String(detail['signature'])), ...signed]
  })
}

const ORDERS: readonly (readonly Dialect[])[] = DIALECTS.flatMap((first) =>
  DIALECTS.filter((dialect) => dialect !== first).map((second) => {
    const third = DIALECTS.find((dialect) => dialect !== first && dialect !== second) as Dialect
    return [first, second, third]
  }),
)

const PLACES = ORDERS.flatMap((order) => STORAGES.map((storage) => ({ order, storage, name: order.join(', ') })))

describe.each(PLACES)('a session over $name and back, on $storage', ({ order, storage }) => {
  it('B-SWITCH-1: its thoughts go back to each provider as they came, and to the others in words; nothing is refused (AC-44)', async () => {
    const store = storeOf(storage)
    const providers = await Providers.open(store)
    const [first, second, third] = order as [Dialect, Dialect, Dialect]
    const { id } = await providers.harnesses[first].open()
    const seals: Record<Dialect, string[]> = { messages: [], responses: [], chat: [] }
    const thoughts: string[] = []
    const thinking = (dialect: Dialect) => {
      const thought = providers.thought()
      seals[dialect].push((dialect === 'responses' ? thought.encrypted : thought.signature) ?? '')
      thoughts.push(thought.text)
      return thought
    }
    const turn = (dialect: Dialect, text: string): readonly ChaosReply[] => [
      { reasoning: thinking(dialect), text: 'Let me see.', calls: [look('Oslo'), look('Rom')] },
      { reasoning: thinking(dialect), calls: [look('Bonn', 'fail')] },
      { reasoning: thinking(dialect), text },
    ]
    await providers.run(first, id, 'Compare.', ...turn(first, 'One.'))
    await providers.run(second, id, [{ type: 'text', text: 'And this?' }, PICTURE], ...turn(second, 'Two.'))
    await providers.run(third, id, 'And now?', ...turn(third, 'Three.'))
    for (const [dialect, text] of [
      [first, 'Four.'],
      [second, 'Five.'],
      [third, 'Six.'],
      [first, 'Seven.'],
    ] as const) {
      const before = [...thoughts]
      const own = [...seals[dialect]]
      const result = await providers.run(dialect, id, 'Go on.', ...turn(dialect, text))
      expect(result).toMatchObject({ status: 'completed', text })
      const request = providers.chaos.requests.at(-3)
      expect(request?.dialect).toBe(dialect)
      expect(native(request)).toEqual(own)
      const said = JSON.stringify(request?.body)
      for (const other of DIALECTS)
        if (other !== dialect) for (const sealed of seals[other]) expect(said).not.toContain(sealed)
      for (const thought of before) expect(said).toContain(thought)
    }
    expect(providers.refused).toEqual([])
  })

  it('B-SWITCH-2: an interrupted turn, a failure and odd ids are no hindrance to the next provider', async () => {
    const store = storeOf(storage)
    const providers = await Providers.open(store)
    const [first, second, third] = order as [Dialect, Dialect, Dialect]
    const { id } = await providers.harnesses[first].open()
    await providers.run(first, id, 'Look.', { calls: [look('Oslo'), look('Rom')], chaos: { blankIds: true } }, 'One.')
    await providers.run(
      second,
      id,
      'Look.',
      { calls: [look('Oslo'), look('Rom')], chaos: { duplicateIds: true } },
      'Two.',
    )
    await interrupted(providers, third, id)
    await providers.run(first, id, 'Empty?', { reasoning: providers.thought() })
    await providers.run(second, id, 'Refused?', { text: 'No.', finish: 'refusal' })
    await providers.run(
      third,
      id,
      'Cut?',
      { calls: [{ tool: 'look', rawArgs: '{"city":"Os' }], finish: 'length' },
      'Cut.',
    )
    await providers.run(first, id, 'Failed?', { status: 401 })
    for (const dialect of [...order, ...order]) {
      expect(await providers.run(dialect, id, 'Still there?', 'Yes.')).toMatchObject({
        status: 'completed',
        text: 'Yes.',
      })
    }
    expect(providers.refused).toEqual([])
  })
})

/** The provider begins to speak and is interrupted. */
async function interrupted(providers: Providers, dialect: Dialect, id: string): Promise<void> {
  providers.queue({ text: 'x'.repeat(9_000), deltas: 30, reasoning: 'Hm.', chaos: { stallAfterBytes: 5_000 } })
  const session = providers.session(dialect, id)
  const stream = session.stream('Talk.', { deltas: true })
  let stopped = false
  for await (const event of stream) {
    if (event.type !== 'delta' || stopped) continue
    stopped = true
    await session.interrupt()
  }
  expect(await stream.result).toMatchObject({ status: 'interrupted' })
  providers.clear()
}

describe('thoughts', () => {
  it('B-SWITCH-3: what a provider hid goes back to it alone, and is dropped when thinking is off (AC-44)', async () => {
    const store = storeOf('memory')
    const providers = await Providers.open(store)
    const { id } = await providers.harnesses.messages.open()
    const hidden = providers.thought(true)
    await providers.run('messages', id, 'Look.', { reasoning: hidden, calls: [look('Oslo')] }, 'One.')
    await providers.run('responses', id, 'Go on.', 'Two.')
    expect(JSON.stringify(providers.chaos.requests.at(-1)?.body)).not.toContain(hidden.signature)
    await providers.run('messages', id, 'Go on.', 'Three.')
    expect(native(providers.chaos.requests.at(-1))).toEqual([hidden.signature])
    const off = model('anthropic:claude-x', { baseUrl: providers.chaos.url, key: KEY, reasoning: 'off' })
    await harnessOf({ model: off, store, tools: tools() }).session(id).run('Without thinking.')
    expect(native(providers.chaos.requests.at(-1))).toEqual([])
    expect(JSON.stringify(providers.chaos.requests.at(-1)?.body)).not.toContain(hidden.signature)
    expect(providers.refused).toEqual([])
  })

  it('B-SWITCH-4: two hosts of one protocol are two providers: signed thoughts of one are words to the other', async () => {
    const store = storeOf('memory')
    const providers = await Providers.open(store)
    const { id } = await providers.harnesses.chat.open()
    const thought = providers.thought()
    await providers.run('chat', id, 'Look.', { reasoning: thought, calls: [look('Oslo')] }, 'One.')
    const other = hosted(providers.chaos, 'chat', { name: 'deepseek:deepseek-chat' })
    await harnessOf({ model: other, store, tools: tools() }).session(id).run('Go on.')
    const said = JSON.stringify(providers.chaos.requests.at(-1)?.body)
    expect(said).toContain(thought.text)
    expect(said).not.toContain(thought.signature)
    expect(bodyOf(providers.chaos.requests.at(-1))['model']).toBe('deepseek-chat')
    await providers.run('chat', id, 'Back.', 'Two.')
    expect(native(providers.chaos.requests.at(-1))).toEqual([thought.signature])
    expect(providers.refused).toEqual([])
  })
})

type Step = {
  readonly dialect: Dialect
  readonly how:
    | 'text'
    | 'tools'
    | 'blank'
    | 'same'
    | 'fail'
    | 'unknown'
    | 'refusal'
    | 'empty'
    | 'cut'
    | 'broken'
    | 'error'
    | 'interrupt'
  readonly thinks: 'no' | 'signed' | 'hidden'
  readonly picture: boolean
  readonly calls: number
}

const steps: fc.Arbitrary<readonly Step[]> = fc.array(
  fc.record({
    dialect: fc.constantFrom(...DIALECTS),
    how: fc.constantFrom<Step['how']>(
      'text',
      'tools',
      'tools',
      'blank',
      'same',
      'fail',
      'unknown',
      'refusal',
      'empty',
      'cut',
      'broken',
      'error',
      'interrupt',
    ),
    thinks: fc.constantFrom<Step['thinks']>('no', 'signed', 'signed', 'hidden'),
    picture: fc.boolean(),
    calls: fc.integer({ min: 1, max: 3 }),
  }),
  { minLength: 2, maxLength: 8 },
)

/** Generations and hosts that want to be asked in other ways. */
const hosts: fc.Arbitrary<Hosts> = fc.record({
  messages: fc.constantFrom<Host>(
    {},
    { name: 'anthropic:claude-sonnet-4-5', reasoning: 'low' },
    { name: 'anthropic:claude-opus-4-6', reasoning: 'high' },
    { name: 'anthropic:claude-3-5-haiku-latest', reasoning: 'off' },
  ),
  responses: fc.constantFrom<Host>(
    {},
    { name: 'openai:gpt-5.1', reasoning: 'medium' },
    { name: 'openai:gpt-5.1', chain: true },
    { name: 'openai:gpt-4.1' },
  ),
  chat: fc.constantFrom<Host>(
    {},
    { name: 'openrouter:anthropic/claude-sonnet-4.5', reasoning: 'low' },
    { name: 'deepseek:deepseek-chat' },
    { name: 'mistral:mistral-large-latest' },
    { name: 'groq:gpt-oss' },
    { name: 'gemini:gemini-2.5-pro', reasoning: 'high' },
    { name: 'ollama:qwen3' },
  ),
})

function repliesTo({ how, thinks, calls }: Step, providers: Providers): readonly ChaosReply[] {
  const reasoning = thinks === 'no' ? {} : { reasoning: providers.thought(thinks === 'hidden' ? true : undefined) }
  const cities = ['Oslo', 'Rom', 'Bonn'].slice(0, calls)
  const asks = (tool: string): ChaosModelReply => ({
    ...reasoning,
    text: 'See.',
    calls: cities.map((city) => look(city, tool)),
  })
  switch (how) {
    case 'text':
      return [{ ...reasoning, text: 'Said.' }]
    case 'tools':
      return [asks('look'), { ...reasoning, text: 'Said.' }]
    case 'blank':
      return [{ ...asks('look'), chaos: { blankIds: true } }]
    case 'same':
      return [{ ...asks('look'), chaos: { duplicateIds: true } }]
    case 'fail':
      return [asks('fail')]
    case 'unknown':
      return [asks('no such tool!')]
    case 'refusal':
      return [{ text: 'No.', finish: 'refusal' }]
    case 'empty':
      return [reasoning]
    case 'cut':
      return [{ ...reasoning, calls: [{ tool: 'look', rawArgs: '{"city":"Os' }], finish: 'length' }]
    case 'broken':
      return [{ ...reasoning, calls: [{ tool: 'look', rawArgs: 'not json at all' }] }]
    case 'error':
      return [{ status: 401 }]
    case 'interrupt':
      return []
  }
}

it('B-SWITCH-5: whatever a conversation was, and whichever provider answered, no strict provider refuses what comes next', async () => {
  let requests = 0
  await fc.assert(
    fc.asyncProperty(steps, hosts, async (conversed, among) => {
      const store = storeOf('memory')
      const providers = await Providers.open(store, among)
      const { id } = await providers.harnesses.messages.open()
      for (const step of conversed) {
        if (step.how === 'interrupt') await interrupted(providers, step.dialect, id)
        const input: Input = step.picture ? [{ type: 'text', text: 'See this.' }, PICTURE] : 'Go on.'
        await providers.run(step.dialect, id, input, ...repliesTo(step, providers))
      }
      for (const dialect of DIALECTS) {
        expect(await providers.run(dialect, id, 'Still there?', 'Yes.')).toMatchObject({
          status: 'completed',
          text: 'Yes.',
        })
      }
      expect(providers.refused).toEqual([])
      requests += providers.chaos.requests.length
      await Promise.all(Object.values(providers.harnesses).map((harness) => harness.close()))
      await providers.chaos.close()
    }),
    { numRuns: runs(40), seed: 4_2026, endOnFailure: true },
  )
  expect(requests).toBeGreaterThan(runs(200))
})
