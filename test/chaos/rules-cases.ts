// One wrong request and its correction for every rule that `providerRules` has. The requests are merged into the smallest good
// one of the dialect. Before each, the server has given one answer, whose parts some of them send back.
import type { Dialect } from '../../src/testing/index.ts'
import type { Body } from './wire.ts'

export type RuleCase = {
  readonly wrong: Body
  readonly right: Body
  readonly wrongHeaders?: Readonly<Record<string, string>>
  /** Added to the request that the first answer was given to. */
  readonly before?: Body
  readonly status?: number
}

const user = (content: unknown = 'hello'): Body => ({ role: 'user', content })
const said = (...content: readonly Body[]): Body => ({ role: 'assistant', content })
const text = (value: string): Body => ({ type: 'text', text: value })
const use = (id = 'toolu_a', input: unknown = {}): Body => ({ type: 'tool_use', id, name: 'look', input })
const got = (id = 'toolu_a'): Body => ({ type: 'tool_result', tool_use_id: id, content: 'seen' })
const tool = (name: string, schema: Body = { type: 'object' }): Body => ({ name, input_schema: schema })
const image = (media_type: string, data = 'AA=='): Body => ({
  type: 'image',
  source: { type: 'base64', media_type, data },
})
const marked = (block: Body): Body => ({ ...block, cache_control: { type: 'ephemeral' } })
const budget = { thinking: { type: 'enabled', budget_tokens: 1_024 } }
/** As the server gives them first: see answer.ts. */
const SIGNATURE = Buffer.from('terret chaos signature 0').toString('base64')
const ENCRYPTED = Buffer.from('terret chaos encrypted 0').toString('base64')
const thought = (thinking = 'hm', signature = SIGNATURE): Body => ({ type: 'thinking', thinking, signature })
const issuedUse = use('toolu_chaos_0_0')
const issuedGot = got('toolu_chaos_0_0')

const searched = { type: 'server_tool_use', id: 'srvtoolu_a', name: 'web_search', input: {} }
const found = { type: 'web_search_tool_result', tool_use_id: 'srvtoolu_a', content: [] }

const messages: readonly RuleCase[] = [
  { wrong: {}, right: {}, wrongHeaders: { 'anthropic-version': '' } },
  { wrong: { max_tokens: undefined }, right: { max_tokens: 1 } },
  { wrong: { messages: [{ role: 'system', content: 'be' }, user()] }, right: { system: 'be' } },
  { wrong: { messages: [said(text('hi')), user()] }, right: { messages: [user(), said(text('hi')), user()] } },
  { wrong: { messages: [user(), said(), user()] }, right: { messages: [user(), said()] } },
  { wrong: { messages: [user([text('a'), text(' \n')])] }, right: { messages: [user([text('a'), text(' b')])] } },
  { wrong: { messages: [user(), said(text('So '))] }, right: { messages: [user(), said(text('So'))] } },
  { wrong: { messages: [user([image('image/bmp')])] }, right: { messages: [user([image('image/png')])] } },
  {
    wrong: { system: [marked(text('a'))], messages: [user(['b', 'c', 'd', 'e'].map((each) => marked(text(each))))] },
    right: { system: [marked(text('a'))], messages: [user(['b', 'c', 'd'].map((each) => marked(text(each))))] },
  },
  {
    wrong: { messages: [user(), said(marked(thought()), text('so')), user()] },
    right: { messages: [user(), said(thought(), marked(text('so'))), user()] },
  },
  { wrong: { messages: [user([use()])] }, right: { messages: [user(), said(use()), user([got()])] } },
  {
    wrong: { messages: [user(), said(use(), use('toolu_b')), user([got()])] },
    right: { messages: [user(), said(use(), use('toolu_b')), user([got('toolu_b'), got()])] },
  },
  {
    wrong: { messages: [user(), said(use()), user([text('here'), got()])] },
    right: { messages: [user(), said(use()), user([got(), text('here')])] },
  },
  {
    wrong: { messages: [user(), said(use(), text('I look')), user([got()])] },
    right: { messages: [user(), said(text('I look'), use()), user([got()])] },
  },
  {
    wrong: { messages: [user(), said(text('no')), user([got()])] },
    right: { messages: [user(), said(use()), user([got()])] },
  },
  {
    wrong: { messages: [user(), said(use()), user([got()]), said(use()), user([got()])] },
    right: { messages: [user(), said(use()), user([got()]), said(use('toolu_b')), user([got('toolu_b')])] },
  },
  {
    wrong: { messages: [user(), said(use()), user([got(), got()])] },
    right: { messages: [user(), said(use()), user([got()])] },
  },
  {
    wrong: { messages: [user(), said(use('toolu_a', '{"a":1}')), user([got()])] },
    right: { messages: [user(), said(use('toolu_a', { a: 1 })), user([got()])] },
  },
  {
    wrong: { messages: [user(), said(use('call.a')), user([got('call.a')])] },
    right: { messages: [user(), said(use('call_a')), user([got('call_a')])] },
  },
  { wrong: { tools: [tool('fs.read')] }, right: { tools: [tool('fs_read')] } },
  { wrong: { tools: [tool('a'), tool('a')] }, right: { tools: [tool('a'), tool('b')] } },
  { wrong: { tools: [tool('a', {})] }, right: { tools: [tool('a')] } },
  {
    wrong: { tools: [tool('a')], tool_choice: { type: 'tool', name: 'b' } },
    right: { tools: [tool('a')], tool_choice: { type: 'tool', name: 'a' } },
  },
  { wrong: { thinking: { type: 'enabled', budget_tokens: 1_000 } }, right: budget },
  { wrong: { ...budget, max_tokens: 1_024 }, right: { ...budget, max_tokens: 1_025 } },
  { wrong: { ...budget, temperature: 0 }, right: { ...budget, temperature: 1 } },
  {
    wrong: { ...budget, tools: [tool('a')], tool_choice: { type: 'any' } },
    right: { ...budget, tools: [tool('a')], tool_choice: { type: 'auto' } },
  },
  {
    wrong: { messages: [user(), said(thought('hm!'), issuedUse), user([issuedGot])] },
    right: { messages: [user(), said(thought(), issuedUse), user([issuedGot])] },
  },
  {
    wrong: { ...budget, messages: [user(), said(issuedUse), user([issuedGot])] },
    right: { ...budget, messages: [user(), said(thought(), issuedUse), user([issuedGot])] },
  },
  {
    wrong: { tools: [tool('a', { type: 'object', anyOf: [{ type: 'object' }] })] },
    right: { tools: [tool('a', { type: 'object', properties: { b: { anyOf: [{ type: 'object' }] } } })] },
  },
  {
    wrong: { messages: [user([image('image/png', 'A'.repeat(5_242_884))])] },
    right: { messages: [user([image('image/png', 'A'.repeat(5_242_880))])] },
  },
  {
    wrong: { messages: [user(), said(use()), user([{ ...got(), content: [image('image/png')], is_error: true }])] },
    right: { messages: [user(), said(use()), user([{ ...got(), content: [image('image/png')] }])] },
  },
  {
    wrong: { messages: [user(), said(searched), user()] },
    right: { messages: [user(), said(searched, found), user()] },
  },
]

const call = (call_id = 'call_a', more: Body = {}): Body => ({
  type: 'function_call',
  call_id,
  name: 'look',
  arguments: '{}',
  ...more,
})
const output = (call_id = 'call_a'): Body => ({ type: 'function_call_output', call_id, output: 'seen' })
const reasoning = (more: Body = {}): Body => ({
  type: 'reasoning',
  id: 'rs_chaos_0',
  summary: [],
  encrypted_content: ENCRYPTED,
  ...more,
})
const issuedSaid = {
  type: 'message',
  id: 'msg_chaos_0',
  role: 'assistant',
  content: [{ type: 'output_text', text: 'so' }],
}
const issuedOutput = output('call_chaos_0_0')
const flat = (name: string, more: Body = {}): Body => ({
  type: 'function',
  name,
  parameters: { type: 'object' },
  ...more,
})
const closed = { type: 'object', properties: { a: { type: 'string' } }, required: ['a'], additionalProperties: false }
const open = { type: 'object', properties: { a: { type: 'string' } }, required: [], additionalProperties: false }
const format = (more: Body): Body => ({ text: { format: more } })

const responses: readonly RuleCase[] = [
  { wrong: { max_tokens: 100 }, right: { max_output_tokens: 100 } },
  { wrong: { input: [] }, right: { input: 'hello' } },
  {
    wrong: { input: [user(), { role: 'assistant', content: [{ type: 'input_text', text: 'hi' }] }, user()] },
    right: { input: [user(), { role: 'assistant', content: [{ type: 'output_text', text: 'hi' }] }, user()] },
  },
  {
    wrong: { input: [user(), { ...issuedSaid, id: 'msg_x' }, { ...issuedSaid, id: 'msg_x' }, user()] },
    right: { input: [user(), { ...issuedSaid, id: 'msg_x' }, { ...issuedSaid, id: 'msg_y' }, user()] },
  },
  {
    wrong: { previous_response_id: 'resp_gone', input: [issuedOutput] },
    right: { previous_response_id: 'resp_chaos_0', input: [issuedOutput] },
  },
  { wrong: { input: [user(), output()] }, right: { input: [user(), call(), output()] } },
  {
    wrong: { previous_response_id: 'resp_chaos_0', input: [user('go on')] },
    right: { previous_response_id: 'resp_chaos_0', input: [issuedOutput, user('go on')] },
  },
  {
    wrong: { input: [user(), call('c'.repeat(65)), output('c'.repeat(65))] },
    right: { input: [user(), call('c'.repeat(64)), output('c'.repeat(64))] },
  },
  {
    wrong: { input: [user(), call('call_a', { arguments: {} }), output()] },
    right: { input: [user(), call(), output()] },
  },
  {
    before: { store: false },
    status: 404,
    wrong: { input: [user(), reasoning({ encrypted_content: null }), issuedSaid] },
    right: { input: [user(), reasoning(), issuedSaid] },
  },
  {
    wrong: { input: [user(), reasoning({ encrypted_content: `${ENCRYPTED}=` }), issuedSaid] },
    right: { input: [user(), reasoning(), issuedSaid] },
  },
  { wrong: { input: [user(), reasoning(), user()] }, right: { input: [user(), reasoning(), issuedSaid, user()] } },
  { wrong: { input: [user(), issuedSaid, user()] }, right: { input: [user(), reasoning(), issuedSaid, user()] } },
  { wrong: { tools: [{ type: 'function', function: { name: 'look' } }] }, right: { tools: [flat('look')] } },
  {
    wrong: { tools: [flat('a', { strict: true, parameters: open })] },
    right: { tools: [flat('a', { strict: true, parameters: closed }), flat('b', { strict: false, parameters: open })] },
  },
  {
    wrong: { tools: [flat('a')], tool_choice: { type: 'function', name: 'b' } },
    right: { tools: [flat('a')], tool_choice: { type: 'function', name: 'a' } },
  },
  {
    wrong: format({ type: 'json_schema', name: 'an answer', schema: closed }),
    right: format({ type: 'json_schema', name: 'answer', strict: true, schema: closed }),
  },
  {
    wrong: format({ type: 'json_object' }),
    right: { ...format({ type: 'json_object' }), input: [user('hello in JSON')] },
  },
  { wrong: { include: ['reasoning.content'] }, right: { include: ['reasoning.encrypted_content'] } },
  { wrong: { max_output_tokens: 15 }, right: { max_output_tokens: 16 } },
  {
    wrong: { tools: [flat('a', { strict: false, parameters: { ...open, oneOf: [open] } })] },
    right: { tools: [flat('a', { strict: false, parameters: open })] },
  },
  {
    wrong: { input: [user(), call(), { ...output(), output: [{ type: 'text', text: 'seen' }] }] },
    right: { input: [user(), call(), { ...output(), output: [{ type: 'input_text', text: 'seen' }] }] },
  },
]

const made = (id = 'call_a', args: unknown = '{}'): Body => ({
  id,
  type: 'function',
  function: { name: 'look', arguments: args },
})
const calls = (...list: readonly Body[]): Body => ({ role: 'assistant', content: null, tool_calls: list })
const answered = (tool_call_id = 'call_a', content: unknown = 'seen'): Body => ({ role: 'tool', tool_call_id, content })
const nested = (name: string, more: Body = {}): Body => ({
  type: 'function',
  function: { name, parameters: { type: 'object' }, ...more },
})
const picture = [{ type: 'image_url', image_url: { url: 'https://example.com/a.png' } }]
const deep = { type: 'object', properties: { a: { ...open } }, required: ['a'], additionalProperties: false }
const schema = (more: Body): Body => ({ response_format: { type: 'json_schema', json_schema: more } })

const chat: readonly RuleCase[] = [
  { wrong: { messages: [] }, right: { messages: [user()] } },
  {
    wrong: { messages: [{ role: 'model', content: 'hi' }] },
    right: { messages: [{ role: 'developer', content: 'hi' }] },
  },
  {
    wrong: { messages: [user(), { role: 'assistant', content: null }, user()] },
    right: { messages: [user(), { role: 'assistant', content: '' }, user()] },
  },
  {
    wrong: { messages: [user(), calls(made()), answered('call_a', picture)] },
    right: { messages: [user(), calls(made()), answered(), user(picture)] },
  },
  {
    wrong: { messages: [user(), { role: 'assistant', content: 'hi', tool_calls: [] }, user()] },
    right: { messages: [user(), { role: 'assistant', content: 'hi' }, user()] },
  },
  {
    wrong: { messages: [user(), calls(made(), made('call_b')), answered(), user()] },
    right: { messages: [user(), calls(made(), made('call_b')), answered('call_b'), answered(), user()] },
  },
  {
    wrong: { messages: [user(), answered()] },
    right: { messages: [user(), calls(made()), answered()] },
  },
  {
    wrong: { messages: [user(), calls(made('call_a', {})), answered()] },
    right: { messages: [user(), calls(made('call_a', '{}')), answered()] },
  },
  {
    wrong: { messages: [user(), calls(made('call_a', '{"a":')), answered()] },
    right: { messages: [user(), calls(made('call_a', '{"a":1}')), answered()] },
  },
  {
    wrong: { messages: [user(), calls(made('c'.repeat(41))), answered('c'.repeat(41))] },
    right: { messages: [user(), calls(made('c'.repeat(40))), answered('c'.repeat(40))] },
  },
  {
    wrong: { messages: [user(), calls(made(), made()), answered()] },
    right: { messages: [user(), calls(made(), made('call_b')), answered(), answered('call_b')] },
  },
  { wrong: { tools: [] }, right: { tools: [nested('a')] } },
  { wrong: { tools: [nested('n'.repeat(65))] }, right: { tools: [nested('n'.repeat(64))] } },
  {
    wrong: { tools: [nested('a', { strict: true, parameters: deep })] },
    right: { tools: [nested('a', { strict: true, parameters: closed })] },
  },
  { wrong: { tool_choice: 'auto' }, right: { tools: [nested('a')], tool_choice: 'auto' } },
  {
    wrong: { stream_options: { include_usage: true } },
    right: { stream: true, stream_options: { include_usage: true } },
  },
  { wrong: { model: 'gpt-5-mini', max_tokens: 10 }, right: { model: 'gpt-5-mini', max_completion_tokens: 10 } },
  {
    wrong: schema({ name: 'answer', strict: true, schema: open }),
    right: schema({ name: 'answer', strict: true, schema: closed }),
  },
  {
    wrong: { response_format: { type: 'json_object' } },
    right: { response_format: { type: 'json_object' }, messages: [user('hello in json')] },
  },
  {
    wrong: { tools: [nested('a', { parameters: { ...open, not: {} } })] },
    right: { tools: [nested('a', { parameters: open })] },
  },
]

/** In the order of the rules. */
export const ruleCases: Readonly<Record<Dialect, readonly RuleCase[]>> = { messages, responses, chat }
