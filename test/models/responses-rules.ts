// The rules by which OpenAI Responses refuses a request, as a checker of bodies: what a strict host would say. Written from
// the published pages and error texts named at each rule, not from our encoder.
type Obj = { readonly [key: string]: unknown }
type Rule = (broken: boolean, why: string) => void

const NAME = /^[a-zA-Z0-9_-]{1,64}$/
/** Calls of the provider's own tools, which come back as they came. */
const SERVED: readonly unknown[] = ['web_search_call', 'code_interpreter_call', 'file_search_call']

/** What a strict host would refuse this body for; empty when it takes it. */
export function refusals(text: string): readonly string[] {
  const body = JSON.parse(text) as Obj
  const found: string[] = []
  const rule: Rule = (broken, why) => {
    if (broken) found.push(why)
  }
  // RFC 8259 section 8.2: half of a surrogate pair is no text that parsers agree on.
  rule(/(?<!\\)(\\\\)*\\ud[89ab][0-9a-f]{2}(?!\\ud[c-f])/i.test(text), 'R1 half of a surrogate pair')
  // https://platform.openai.com/docs/guides/migrate-to-responses
  const moved = ['messages', 'max_tokens', 'max_completion_tokens', 'response_format', 'reasoning_effort']
  rule(
    moved.some((name) => name in body),
    'R2 a field of Chat Completions',
  )
  const items = body.input as readonly Obj[]
  rule(!Array.isArray(items) || items.length === 0, 'R3 no input')
  for (const item of items) itemRules(item, rule)
  pairRules(items, typeof body.previous_response_id === 'string', rule)
  reasoningRules(body, items, rule)
  optionRules(body, rule)
  return found
}

// https://platform.openai.com/docs/api-reference/responses/create#responses-create-input
function itemRules({ type, role, content, call_id: id, name, arguments: args, output }: Obj, rule: Rule): void {
  const known = ['message', 'reasoning', 'function_call', 'function_call_output', ...SERVED]
  rule(!known.includes(String(type)), 'R4 another item')
  if (type === 'message') {
    const parts = content as readonly Obj[]
    rule(role !== 'user' && role !== 'assistant', 'R4 a role that there is not')
    rule(parts.length === 0, 'R5 a message without content')
    for (const part of parts) partRules(part, role === 'assistant', rule)
  }
  if (type !== 'function_call' && type !== 'function_call_output') return
  // "Invalid 'input[2].call_id': empty string." and "string too long. Expected a string with maximum length 64"
  rule(typeof id !== 'string' || id.trim() === '' || id.length > 64, 'R8 a call_id of another form')
  if (type === 'function_call_output') {
    rule(String(output).trim() === '' || (Array.isArray(output) && output.length === 0), 'R9 an empty output')
    if (Array.isArray(output)) for (const part of output as readonly Obj[]) partRules(part, false, rule)
    return
  }
  rule(!NAME.test(String(name)), 'R10 a name of another form')
  rule(typeof args !== 'string' || !isObject(JSON.parse(args)), 'R11 arguments that are no JSON object in a text')
}

// "Invalid value: 'input_text'. Supported values are: 'output_text' and 'refusal'."
function partRules(part: Obj, own: boolean, rule: Rule): void {
  const { type, text, image_url: image, file_data: file, filename, file_url: url, file_id: id } = part
  const may = own ? ['output_text', 'refusal'] : ['input_text', 'input_image', 'input_file']
  rule(!may.includes(String(type)), 'R6 content of the other side')
  const sources = [image, file, url, id].filter((source) => source !== undefined)
  if (type !== 'input_text' && !own) rule(sources.length !== 1, 'R7 not exactly one source of a file')
  if (id !== undefined || url !== undefined) rule(String(id ?? url) === '', 'R7 a file that is nowhere')
  else if (type === 'input_image')
    rule(!/^(data:image\/(png|jpeg|gif|webp);base64,|https:)./.test(String(image)), 'R7 a bad image')
  else if (type === 'input_file') rule(!/^data:[^;]+;base64,./.test(String(file)) || !filename, 'R7 a bad file')
  else rule(String(text).trim() === '', 'R5 a text without text')
}

// "No tool output found for function call …" and "No tool call found for function call output with call_id …"
function pairRules(items: readonly Obj[], chained: boolean, rule: Rule): void {
  const idsOf = (type: string): readonly unknown[] => items.filter((item) => item.type === type).map((i) => i.call_id)
  const [calls, outputs] = [idsOf('function_call'), idsOf('function_call_output')]
  rule(new Set(calls).size !== calls.length, 'R12 one id for two calls')
  rule(new Set(outputs).size !== outputs.length, 'R12 two outputs for one call')
  rule(!calls.every((id) => outputs.includes(id)), 'R13 a call without its output')
  items.forEach(({ type, call_id: id }, at) => {
    if (type !== 'function_call_output') return
    const asked = items.slice(0, at).some((item) => item.type === 'function_call' && item.call_id === id)
    rule(!asked && !chained, 'R14 an output without its call before it')
  })
}

// "Item 'rs_…' of type 'reasoning' was provided without its required following item." and "Duplicate item found with id …".
// The item that follows may be a call of the provider's own tool: "Item 'ws_…' of type 'web_search_call' was provided without its
// required 'reasoning' item".
function reasoningRules({ store }: Obj, items: readonly Obj[], rule: Rule): void {
  const ids = items.flatMap(({ id }) => (typeof id === 'string' ? [id] : []))
  rule(new Set(ids).size !== ids.length, 'R15 an item twice')
  items.forEach(({ type, encrypted_content: sealed, summary }, at) => {
    if (type !== 'reasoning') return
    const led = items.slice(at + 1).find((item) => item.type !== 'reasoning')
    const leads = led?.role === 'assistant' || led?.type === 'function_call' || SERVED.includes(led?.type)
    rule(!leads, 'R16 a thought that led nowhere')
    rule(store !== true && (typeof sealed !== 'string' || sealed === ''), 'R17 a thought that nobody stored')
    rule(!Array.isArray(summary), 'R17 a thought without a summary')
  })
}

// https://developers.openai.com/api/docs/guides/structured-outputs, …/guides/function-calling, …/guides/reasoning
function optionRules(body: Obj, rule: Rule): void {
  const tools = (body.tools ?? []) as readonly Obj[]
  rule(body.tools !== undefined && tools.length === 0, 'R18 an empty list of tools')
  for (const { name, parameters } of tools) {
    rule(!NAME.test(String(name)), 'R10 a name of another form')
    rule(!isObject(parameters) || parameters.type !== 'object' || !isObject(parameters.properties), 'R18 an odd schema')
  }
  const { type, name }: Obj = isObject(body.tool_choice) ? body.tool_choice : {}
  rule(type === 'function' && !tools.some((tool) => tool.name === name), 'R18 a choice that is not listed')
  const most = body.max_output_tokens
  rule(most !== undefined && !(Number.isInteger(most) && Number(most) >= 16), 'R18 too few output tokens')
}

function isObject(value: unknown): value is Obj {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
