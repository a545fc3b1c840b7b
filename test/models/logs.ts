// Random logs for property tests: what a session's transcript could look like after any trouble. Nothing is asserted here.
import fc from 'fast-check'
import type { Json, Part } from '../../src/kernel/content.ts'
import type { Message } from '../../src/kernel/transcript.ts'

/** Among them what our own ids look like, with and without the nine letters of Mistral. */
const ids = fc.oneof(
  fc.constantFrom('', ' ', 'a', 'b', 'call_1', 'functions.read:0', 'ünï', 'D6X1kRf9a', 'x'.repeat(65), 'y'.repeat(41)),
  fc.tuple(fc.nat(12), fc.nat(2)).map(([seq, index]) => `call_${seq}_${index}`),
  fc.tuple(fc.nat(12), fc.nat(2)).map(([seq, index]) => `00000${seq.toString(36)}00${index}`),
  fc.string({ maxLength: 12 }),
)
const names = fc.constantFrom('look', 'read_file', 'made up!', '', 'é', 'z'.repeat(80), '\ud800')
const args: fc.Arbitrary<Json> = fc.oneof(
  fc.constantFrom<Json>({}, { a: 1 }, { text: 'half \ud83d' }, null, 'not json', [1], 3, true),
  fc.dictionary(fc.string({ maxLength: 4 }), fc.jsonValue({ maxDepth: 2 }) as fc.Arbitrary<Json>, { maxKeys: 3 }),
)
const texts = fc.constantFrom('', ' ', '\n', 'Hello.', 'half \udc00 a pair', '<thinking>', 'long '.repeat(30))

/** The providers' own blocks, and what is none. Their ids differ, as the providers' do. */
const blocks = (n: number): readonly Json[] => [
  { type: 'thinking', thinking: 'Hm.', signature: `sig${n}` },
  { type: 'thinking', thinking: 'Hm.', signature: '' },
  { type: 'redacted_thinking', data: `red${n}` },
  { id: `rs_${n}`, type: 'reasoning', summary: [], encrypted_content: `gAAA${n}` },
  { phase: 'commentary' },
  { response: `resp_${n}` },
  { reasoning_details: [{ type: 'reasoning.text', text: 'Hm.', signature: `sig${n}` }] },
  { extra_content: { google: { thought_signature: `sig${n}` } } },
  null,
  'odd',
]
const endpoints = ['anthropic', 'openai', 'openrouter', 'deepseek', 'gemini'] as const
const models = ['claude-sonnet-4-5', 'claude-opus-4-6', 'gpt-5.2', 'm'] as const

/** What a reply holds, but for the number that makes it the only one of its kind. */
type Numbered = (n: number) => Part

const thoughts: fc.Arbitrary<Numbered> = fc
  .record({
    text: texts,
    signed: fc.boolean(),
    by: fc.constantFrom(...endpoints),
    model: fc.constantFrom(...models),
    at: fc.nat(3),
    block: fc.nat(9),
  })
  .map(({ text, signed, by, model, at, block }) => (n) => {
    const opaque = { by, model, at, data: blocks(n)[block] ?? null }
    return signed ? { type: 'reasoning', text, opaque } : { type: 'reasoning', text }
  })
/** Of tools that a provider ran. Halves of pairs are among them. */
const served: fc.Arbitrary<Numbered> = fc
  .record({ by: fc.constantFrom(...endpoints), at: fc.nat(3), pair: fc.nat(1), kind: fc.nat(3) })
  .map(({ by, at, pair, kind }) => (n) => {
    const id = `srvtoolu_${pair}`
    const data: Json =
      [
        { type: 'server_tool_use', id, name: 'web_search', input: {} },
        { type: 'web_search_tool_result', tool_use_id: id, content: [] },
        { type: 'web_search_call', id: `ws_${n}`, status: 'completed', action: { type: 'search', query: 'q' } },
      ][kind] ?? null
    return { type: 'provider', tool: 'web_search', opaque: { by, model: 'm', at, data } }
  })
const said: fc.Arbitrary<Part> = texts.map((text) => ({ type: 'text', text }))
const told: fc.Arbitrary<Numbered> = said.map((part) => () => part)
const media = fc.constantFrom('image/png', 'application/pdf', 'audio/wav', 'text/plain')
const data: fc.Arbitrary<Part> = fc
  .tuple(media, fc.constantFrom('', 'aGVsbG8='))
  .map(([of, bytes]) => ({ type: 'data', media: of, data: bytes }))
/** What a provider reads itself, and what only another provider has. */
const files: fc.Arbitrary<Part> = fc.oneof(
  data,
  data,
  media.map((of): Part => ({ type: 'url', media: of, url: 'https://example.com/a' })),
  fc
    .tuple(media, fc.constantFrom(...endpoints))
    .map(([of, provider]): Part => ({ type: 'file_id', media: of, provider, id: 'file_1' })),
)
const made: fc.Arbitrary<Numbered> = data.map((part) => () => part)
const attached = fc.array(fc.oneof(data, said), { maxLength: 2 })

type Fate = 'one' | 'none' | 'two' | 'late'
const calls = fc.record({
  id: ids,
  tool: names,
  args,
  fate: fc.constantFrom<Fate>('one', 'one', 'one', 'none', 'two', 'late'),
})

type Piece =
  | { readonly type: 'user'; readonly parts: readonly Part[] }
  | { readonly type: 'stray'; readonly key: string }
  | {
      readonly type: 'assistant'
      readonly parts: readonly Numbered[]
      readonly calls: readonly {
        readonly id: string
        readonly tool: string
        readonly args: Json
        readonly fate: Fate
      }[]
      readonly backwards: boolean
      readonly content: string
      readonly files: readonly Part[]
    }

const pieces: fc.Arbitrary<readonly Piece[]> = fc.array(
  fc.oneof(
    {
      weight: 3,
      arbitrary: fc.record({
        type: fc.constant('user' as const),
        parts: fc.array(fc.oneof(said, said, files), { maxLength: 3 }),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({ type: fc.constant('stray' as const), key: fc.constantFrom('1.0', '2.0', '4.1', '99.0') }),
    },
    {
      weight: 5,
      arbitrary: fc.record({
        type: fc.constant('assistant' as const),
        parts: fc.array(fc.oneof(told, told, made, thoughts, thoughts, thoughts, served), { maxLength: 4 }),
        calls: fc.array(calls, { maxLength: 3 }),
        backwards: fc.boolean(),
        content: fc.constantFrom('', ' ', 'fine', 'half \ud83d'),
        files: fc.oneof(fc.constant([]), attached),
      }),
    },
  ),
  { maxLength: 10 },
)

/** A log in which anything may be missing, doubled, misplaced, blank or odd. Events have their own seq, as in every log. */
export const logs: fc.Arbitrary<readonly Message[]> = pieces.map((list) => {
  const messages: Message[] = []
  let late: Message[] = []
  let seq = 0
  const result = (key: string, tool: string, content: string, parts: readonly Part[] = []): Message => {
    seq += 1
    const told = { role: 'tool', seq, call: key, id: '', tool, ok: content === 'fine', content } as const
    return parts.length > 0 ? { ...told, parts } : told
  }
  for (const piece of list) {
    seq += 1
    if (piece.type === 'user') messages.push({ role: 'user', seq, parts: piece.parts })
    else if (piece.type === 'stray') messages.push(result(piece.key, 'look', 'lost'))
    else {
      const shown = piece.calls.map(({ id, tool, args: given }, i) => ({ key: `${seq}.${i}`, id, tool, args: given }))
      const parts = piece.parts.map((part, i) => part(seq * 10 + i))
      messages.push({ role: 'assistant', seq, parts, calls: shown })
      const results = piece.calls.flatMap(({ fate, tool }, i) => {
        const times = fate === 'none' || fate === 'late' ? 0 : fate === 'two' ? 2 : 1
        return Array.from({ length: times }, () => result(shown[i]?.key ?? '', tool, piece.content, piece.files))
      })
      messages.push(...(piece.backwards ? results.reverse() : results))
      late = shown.filter((_, i) => piece.calls[i]?.fate === 'late').map(({ key, tool }) => result(key, tool, 'late'))
      continue
    }
    messages.push(...late)
    late = []
  }
  return messages
})
