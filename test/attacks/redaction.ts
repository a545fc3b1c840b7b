// Row 46: a known secret on its way to any sink: the database, the log, the stream, the model, the result.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { defineTool, Harness, type Script, sqlite, type Tool, ToolFailure, output } from '../../src/index.ts'
import type { Json } from '../../src/kernel/content.ts'
import type { Case, Row } from './case.ts'
import type { World } from './world.ts'

type Leak = {
  readonly name: string
  readonly script: (secret: string) => Script
  readonly input?: (secret: string) => string
  /** What the tool `leak` does. */
  readonly leaks?: (secret: string, keep: (text: string) => unknown) => unknown
  /** How long a beginning of the secret is a secret of its own: then the rest of it may not be seen either. */
  readonly first?: number
  /** From where on, or up to where, a part of it counts as all of it. */
  readonly rest?: number
  readonly half?: number
}

const ONCE: Script = [{ calls: [{ tool: 'leak' }] }, 'done']
const plain = (): Script => ONCE
/** A secret has more than one spelling. */
const spelled = (secret: string): Readonly<Record<string, string>> => ({
  base64: Buffer.from(`user:${secret}`).toString('base64'),
  hexadecimal: Buffer.from(secret).toString('hex'),
  address: `https://example.org/?token=${encodeURIComponent(secret)}`,
  json: JSON.stringify(JSON.stringify({ token: secret })),
  percents: [...Buffer.from(secret)].map((byte) => `%${byte.toString(16)}`).join(''),
  colons: [...Buffer.from(secret)].map((byte) => byte.toString(16)).join(':'),
  entities: [...Buffer.from(secret)].map((byte) => `&#${byte};`).join(''),
  spaces: secret.split('').join(' '),
  bytes: [...Buffer.from(secret)].map((byte) => byte.toString(16)).join(' '),
})

const LEAKS: readonly Leak[] = [
  { name: 'as the result of a tool', script: plain, leaks: (secret) => `the token is ${secret}.` },
  { name: 'as JSON of a tool', script: plain, leaks: (secret) => ({ deep: [{ token: secret }] }) },
  { name: 'as a key in the JSON of a tool', script: plain, leaks: (secret) => ({ [secret]: 1 }) },
  {
    name: 'in the metadata of a tool',
    script: plain,
    leaks: (secret) => output({ content: 'fine', metadata: { token: secret } }),
  },
  {
    name: 'in a text that a tool keeps',
    script: plain,
    leaks: (secret, keep) => void keep(`${'x'.repeat(90_000)}${secret}`),
  },
  { name: 'at the end of a long result', script: plain, leaks: (secret) => `${'x'.repeat(90_000)}${secret}` },
  {
    name: 'in an error',
    script: plain,
    leaks: (secret) => {
      throw new Error(`connect ${secret}`)
    },
  },
  {
    name: 'in a failure',
    script: plain,
    leaks: (secret) => {
      throw new ToolFailure('Failed', `bad ${secret}`, { token: secret })
    },
  },
  {
    name: 'in the name of an error',
    script: plain,
    leaks: (secret) => {
      throw Object.assign(new Error('x'), { name: secret })
    },
  },
  { name: 'in the text of the model', script: (secret) => [`I know ${secret}`] },
  { name: 'in the reasoning of the model', script: (secret) => [{ reasoning: `so ${secret}`, text: 'done' }] },
  {
    name: 'letter by letter in the text of the model',
    script: (secret) => [{ deltas: ['so ', ...secret.split(''), ' it is'] }],
  },
  {
    name: 'in two halves in the text of the model',
    script: (secret) => [{ deltas: [secret.slice(0, 9), secret.slice(9)] }],
  },
  {
    name: 'in two halves, of which the first is another secret',
    script: (secret) => [{ deltas: [secret.slice(0, 9), secret.slice(9)] }],
    first: 9,
  },
  {
    name: 'in the arguments of a call',
    script: (secret) => [{ calls: [{ tool: 'leak', args: { to: secret } }] }, 'done'],
  },
  { name: 'in the name of a tool', script: (secret) => [{ calls: [{ tool: secret, args: {} }] }, 'done'] },
  { name: 'in the id of a call', script: (secret) => [{ calls: [{ tool: 'leak', id: secret }] }, 'done'] },
  { name: 'in the message of the user', script: () => ['done'], input: (secret) => `use ${secret}` },
  {
    name: 'in the trouble of a provider',
    script: (secret) => [{ error: 'bad_request', message: `key ${secret} is bad` }],
  },
  // Real tools cut what they show: half of a secret must not be left.
  { name: 'of which read shows the second half', script: () => filed('read', { column: 12 }), rest: 11 },
  { name: 'at the cut of a line that search found', script: () => filed('search', { pattern: '^x' }), half: 20 },
  { name: 'on a numbered line', script: () => filed('read', {}) },
  ...['base64', 'hexadecimal', 'address', 'json', 'percents', 'colons', 'entities', 'spaces', 'bytes'].map(
    (spelling) => ({
      name: `as ${spelling}`,
      script: plain,
      leaks: (secret: string) => spelled(secret)[spelling] ?? '',
    }),
  ),
]

/** A call of a file tool for the file that holds the secret, so that line 2 is cut within it. */
function filed(tool: string, args: Readonly<Record<string, Json>>): Script {
  const path = tool === 'read' && 'column' in args ? 'own.txt' : 'long.txt'
  return [{ calls: [{ tool, args: { path, ...args } }] }, 'done']
}

const sinks = new WeakMap<World, string>()

function leaker(secret: string, leaks: NonNullable<Leak['leaks']>): Tool {
  return defineTool({
    name: 'leak',
    description: 'leak',
    input: z.object({ to: z.string().optional() }),
    execute: (_, { keep }) => leaks(secret, keep),
  })
}

async function leak(world: World, { script, input, first, leaks = () => 'fine' }: Leak): Promise<void> {
  const { secret } = world
  const store = sqlite(join(world.root, 'db/sessions.db'))
  const known = first === undefined ? { TOKEN: secret } : { FIRST: secret.slice(0, first), TOKEN: secret }
  const secrets = world.defended ? known : {}
  // The model's own text comes from the model: what counts is what it is shown again.
  world.put('ws/own.txt', `${secret}\n`)
  world.put('ws/long.txt', `${'x'.repeat(160)}${secret}${'y'.repeat(60)}\n`)
  const tools = [leaker(secret, leaks), ...world.files()]
  const harness = new Harness({ model: world.model(script(secret)), tools, store, secrets })
  let heard = ''
  const stream = harness.stream(input?.(secret) ?? 'go', { deltas: true })
  for await (const event of stream) heard += JSON.stringify(event)
  const result = await stream.result
  const deltas = textOfDeltas(heard)
  await harness.close()
  const files = readdirSync(join(world.root, 'db')).map((name) => readFileSync(join(world.root, 'db', name), 'latin1'))
  await store.close()
  const after = readFileSync(join(world.root, 'db/sessions.db'), 'latin1')
  sinks.set(world, [heard, deltas, JSON.stringify(result), world.shown, ...files, after].join('\n'))
}

/** What a reader of the stream has in hand when it joins the pieces. */
function textOfDeltas(heard: string): string {
  return [...heard.matchAll(/"kind":"(?:text|reasoning)","part":\d+,"text":"([^"]*)"/g)]
    .map((match) => match[1])
    .join('')
}

export const sinksOfSecrets: Row = {
  row: 46,
  title: 'secrets in what is written, shown and sent',
  cases: LEAKS.map(
    (one): Case => ({
      name: `leaks a secret ${one.name}`,
      attack: (world) => leak(world, one),
      harmed: (world) => {
        const all = sinks.get(world) ?? ''
        const forms = [world.secret, ...Object.values(spelled(world.secret)).filter((form) => !form.includes('{'))]
        const rest = [one.first, one.rest].flatMap((from) => (from === undefined ? [] : [world.secret.slice(from)]))
        const half = one.half === undefined ? [] : [world.secret.slice(0, one.half)]
        return [...forms, ...rest, ...half].some((form) => all.includes(form))
      },
    }),
  ),
}
