// Where our reading of a recorded stream differs from the AI SDK's, and why that is right. Data only: a difference that is
// not listed fails oracle.test.ts, and so does one that is listed and does not occur.
import type { Said } from './oracle-said.ts'

export type Difference = {
  readonly recording: string
  readonly field: keyof Said
  readonly reason: string
  /** What both make of it. Left out for streams that are not committed here, whose words stay where they are. */
  readonly readings?: { readonly ours: unknown; readonly theirs: unknown }
}

function tokens(inputTokens: number, outputTokens: number, cachedTokens = 0, reasoningTokens = 0) {
  return { inputTokens, outputTokens, cachedTokens, cacheWriteTokens: 0, reasoningTokens }
}

function text(...texts: readonly string[]) {
  return texts.map((said) => ({ type: 'text', text: said }))
}

function call(id: string, tool: string, args: unknown) {
  return { id, tool, args, sealed: null }
}

const CUSTOM = 'It is a tool of the provider that we never offer, so a call of it is not ours.'
const WITHOUT = 'Without that call it is a plain stop.'
const THOUGHTS_APART =
  'xAI counts its thoughts in the total and not in the completion; they are output, and paid as such.'

const summary = { type: 'reasoning.summary', format: 'openai-responses-v1', index: 0 }
const encrypted = { type: 'reasoning.encrypted', data: 'gAAAAABsealed==', id: 'rs_0a1b', format: 'openai-responses-v1' }

function openRouterParts(summaries: readonly object[]) {
  const sealed = [...summaries, { ...encrypted, index: 0 }]
  return [{ type: 'reasoning', text: '**Weighing both ports**', sealed }, ...text('Brest.')]
}

const messages: readonly Difference[] = [
  {
    recording: 'messages/no-usage',
    field: 'finish',
    reason: 'The SDK refuses a message that starts without usage; hosts other than Anthropic send such ones.',
    readings: { ours: 'stop', theirs: 'failed' },
  },
  {
    recording: 'messages/no-usage',
    field: 'parts',
    reason: 'As it refused the start, it has no text.',
    readings: { ours: text('Free of charge.'), theirs: [] },
  },
  {
    recording: 'messages/refusal',
    field: 'calls',
    reason:
      'What a model asked for before it was stopped by a refusal is not to be done; the SDK leaves that to its caller.',
    readings: { ours: [], theirs: [call('toolu_01Cut', 'bash', '{"command":"rm')] },
  },
  {
    recording: 'messages/server-tools',
    field: 'finish',
    reason: 'A paused turn is not over; we say that it was cut, the SDK that it stopped.',
    readings: { ours: 'length', theirs: 'stop' },
  },
  {
    recording: 'messages/unknown',
    field: 'parts',
    reason: 'A delta for a block that nobody began belongs nowhere; the SDK passes it on.',
    readings: { ours: text('Still here'), theirs: text('Still here', ' from nowhere') },
  },
]

const responses: readonly Difference[] = [
  {
    recording: 'responses/local-sparse',
    field: 'parts',
    reason: 'The host sends deltas without items and items only in the last event; the SDK reads neither completely.',
    readings: {
      ours: [{ type: 'reasoning', text: 'User wants a prime.', sealed: null }, ...text('The smallest is 2.')],
      theirs: text('The smallest is 2'),
    },
  },
  {
    recording: 'responses/local-sparse',
    field: 'calls',
    reason: 'The call stands only in the last event, which the SDK reads for its usage alone.',
    readings: { ours: [call('call_loc17', 'note', { n: 2 })], theirs: [] },
  },
  {
    recording: 'responses/local-sparse',
    field: 'finish',
    reason: 'Without the call it is a plain stop.',
    readings: { ours: 'calls', theirs: 'stop' },
  },
  {
    recording: 'responses/parallel-tools',
    field: 'calls',
    reason: 'Our calls stand in the order in which they began, as the provider lists them; theirs in which they ended.',
    readings: {
      ours: [call('call_aaaa1111', 'weather', { city: 'Kyiv' }), call('call_bbbb2222', 'weather', { city: 'Oslo' })],
      theirs: [call('call_bbbb2222', 'weather', { city: 'Oslo' }), call('call_aaaa1111', 'weather', { city: 'Kyiv' })],
    },
  },
  {
    recording: 'responses/unknown-events',
    field: 'calls',
    reason: 'A custom tool is never offered by us, so a call of one is not ours.',
    readings: { ours: [], theirs: [call('call_unk14', 'grep', 'rm -rf')] },
  },
  {
    recording: 'responses/unknown-events',
    field: 'finish',
    reason: 'Without that call it is a plain stop.',
    readings: { ours: 'stop', theirs: 'calls' },
  },
]

const chat: readonly Difference[] = [
  {
    recording: 'chat/cut',
    field: 'finish',
    reason: 'The stream breaks off without an end: a failure for us, an unknown reason for the SDK.',
    readings: { ours: 'failed', theirs: 'other' },
  },
  {
    recording: 'chat/cut',
    field: 'calls',
    reason: 'Nothing is run from a stream that broke off, even if its arguments can be read.',
    readings: { ours: [], theirs: [call('call_x', 'write', { path: 'a' })] },
  },
  {
    recording: 'chat/deepseek-thinking',
    field: 'usage',
    reason: 'DeepSeek tells its cache in a field of its own, which the common package does not read.',
    readings: { ours: tokens(300, 60, 256, 40), theirs: tokens(300, 60, 0, 40) },
  },
  {
    recording: 'chat/gemini-signature',
    field: 'usage',
    reason: 'Gemini counts its thoughts in the total and not in the completion; they are output, and paid as such.',
    readings: { ours: tokens(90, 85), theirs: tokens(90, 20) },
  },
  {
    recording: 'chat/groq',
    field: 'usage',
    reason: 'Groq tells its usage inside `x_groq`, which the common package does not read.',
    readings: { ours: tokens(210, 40, 128), theirs: null },
  },
  {
    recording: 'chat/legacy-function',
    field: 'calls',
    reason: 'The old form of a call is read by us and not by the SDK.',
    readings: { ours: [call('', 'wind', { at: 'noon' })], theirs: [] },
  },
  {
    recording: 'chat/moonshot',
    field: 'usage',
    reason: 'Moonshot tells its usage on the choice, which the common package does not read.',
    readings: { ours: tokens(19, 21, 10), theirs: null },
  },
  {
    recording: 'chat/oddities',
    field: 'parts',
    reason: 'The SDK puts the text of a second choice, which nobody asked for, into the first.',
    readings: { ours: text('Cut'), theirs: text('another choiceCut') },
  },
  {
    recording: 'chat/oddities',
    field: 'finish',
    reason: 'One unknown entry makes the SDK drop the chunk that has the reason to stop.',
    readings: { ours: 'length', theirs: 'failed' },
  },
  {
    recording: 'chat/xai',
    field: 'usage',
    reason: THOUGHTS_APART,
    readings: { ours: tokens(300, 220, 256, 200), theirs: tokens(300, 20, 256, 200) },
  },
  {
    recording: 'chat/openrouter-encrypted',
    field: 'parts',
    reason: 'Pieces of one summary are joined by their index; the SDK joins only texts and keeps every piece.',
    readings: {
      ours: openRouterParts([{ ...summary, summary: '**Weighing both ports**' }]),
      theirs: openRouterParts([
        { ...summary, summary: '**Weighing' },
        { ...summary, summary: ' both ports**' },
      ]),
    },
  },
]

const shared: readonly Difference[] = [
  {
    recording: 'shared/responses/lmstudio-tool-call.1',
    field: 'parts',
    reason: 'LM Studio sends the thought in the finished item; the SDK reads only summaries there.',
  },
  { recording: 'shared/responses/openai-apply-patch-tool.1', field: 'calls', reason: CUSTOM },
  { recording: 'shared/responses/openai-apply-patch-tool.1', field: 'finish', reason: WITHOUT },
  { recording: 'shared/responses/openai-custom-tool.1', field: 'calls', reason: CUSTOM },
  { recording: 'shared/responses/openai-custom-tool.1', field: 'finish', reason: WITHOUT },
  { recording: 'shared/responses/openai-local-shell-tool.1', field: 'calls', reason: CUSTOM },
  {
    recording: 'shared/responses/openai-phase.1',
    field: 'parts',
    reason: 'Deltas were cut out of the recording; we believe the finished message, the SDK the deltas that are left.',
  },
  { recording: 'shared/chat/xai-tool-call', field: 'usage', reason: THOUGHTS_APART },
]

export const acceptedDifferences: readonly Difference[] = [...messages, ...responses, ...chat, ...shared]
