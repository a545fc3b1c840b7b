// The rules by which hosts of Chat Completions refuse a request, as a checker of bodies: what a strict host would say. Written
// from the published pages and error texts named at each rule, not from our encoder.
type Obj = { readonly [key: string]: unknown }
type Rule = (broken: boolean, why: string) => void

const NAME = /^[a-zA-Z0-9_-]{1,64}$/
const REFERENCE_ROLES = ['system', 'user', 'assistant', 'tool']

/** What a strict host would refuse this body for; empty when it takes it. `host` adds that host's own rules. */
export function refusals(text: string, host = ''): readonly string[] {
  const body = JSON.parse(text) as Obj
  const messages = body.messages as readonly Obj[]
  const found: string[] = []
  const rule: Rule = (broken, why) => {
    if (broken) found.push(why)
  }
  // RFC 8259 section 8.2: half of a surrogate pair is no text that parsers agree on.
  rule(/(?<!\\)(\\\\)*\\ud[89ab][0-9a-f]{2}(?!\\ud[c-f])/i.test(text), 'C1 half of a surrogate pair')
  rule(messages.length === 0, 'C2 no messages')
  messages.forEach((message, at) => messageRules(message, messages, at, rule))
  toolRules(body, rule)
  // https://platform.openai.com/docs/api-reference/chat/create: only set this when you set stream: true.
  rule('stream_options' in body && body.stream !== true, 'C13 stream_options without a stream')
  // https://openrouter.ai/docs/guides/best-practices/prompt-caching: four explicit breakpoints.
  rule((text.match(/"cache_control":\{/g) ?? []).length > 4, 'C14 more than four cache marks')
  hostRules[host]?.(body, messages, rule)
  return found
}

// https://platform.openai.com/docs/api-reference/chat/create#chat_create-messages
function messageRules(message: Obj, messages: readonly Obj[], at: number, rule: Rule): void {
  const { role, content } = message
  const calls = message.tool_calls as readonly Obj[] | undefined
  rule(!REFERENCE_ROLES.includes(String(role)), 'C3 a role that there is not')
  rule(role !== 'assistant' && !isSaid(content), 'C4 a message without content')
  rule(role === 'assistant' && !isSaid(content) && calls === undefined, 'C5 an assistant without content or calls')
  rule(content === '', 'C5 an empty text where null is meant')
  // "[] is too short - 'messages.1.tool_calls'"
  rule(calls?.length === 0, 'C6 an empty list of calls')
  if (role === 'tool') rule(!isAnswer(messages, at), 'C7 a tool message that answers no call before it')
  for (const call of calls ?? []) callRules(call, messages, at, rule)
}

function isSaid(content: unknown): boolean {
  if (typeof content === 'string') return content.trim() !== ''
  if (!Array.isArray(content) || content.length === 0) return false
  return (content as readonly Obj[]).every(isSoundPart)
}

// https://platform.openai.com/docs/guides/images-vision and https://platform.openai.com/docs/guides/pdf-files
function isSoundPart({ type, text, image_url: image, file, input_audio: audio }: Obj): boolean {
  if (type === 'text') return typeof text === 'string' && text.trim() !== ''
  if (type === 'image_url')
    return /^(data:image\/(png|jpeg|gif|webp);base64,|https:).+/.test(String((image as Obj).url))
  // https://platform.openai.com/docs/guides/audio
  if (type === 'input_audio')
    return ['wav', 'mp3'].includes(String((audio as Obj).format)) && (audio as Obj).data !== ''
  const { filename, file_data: data, file_id: id } = file as Obj
  if (id !== undefined) return type === 'file' && id !== '' && filename === undefined
  return type === 'file' && filename !== '' && /^data:application\/pdf;base64,./.test(String(data))
}

function isAnswer(messages: readonly Obj[], at: number): boolean {
  const asker = messages.slice(0, at).findLast(({ role }) => role !== 'tool')
  const calls = (asker?.tool_calls ?? []) as readonly Obj[]
  return calls.some(({ id }) => id === messages[at]?.tool_call_id)
}

// "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'."
function callRules({ id, type, function: called }: Obj, messages: readonly Obj[], at: number, rule: Rule): void {
  const after = messages.slice(at + 1)
  const end = after.findIndex(({ role }) => role !== 'tool')
  const answers = (end < 0 ? after : after.slice(0, end)).filter(({ tool_call_id: answered }) => answered === id)
  rule(answers.length !== 1, 'C8 a call without exactly one answer right after it')
  const all = messages.flatMap((message) => (message.tool_calls ?? []) as readonly Obj[])
  rule(all.filter((other) => other.id === id).length !== 1, 'C9 an id twice')
  rule(typeof id !== 'string' || id === '' || id.length > 64 || type !== 'function', 'C9 an id or type of another form')
  const { name, arguments: args } = called as Obj
  rule(!NAME.test(String(name)), 'C10 a name of another form')
  rule(typeof args !== 'string' || !isObject(parsed(args)), 'C11 arguments that are no JSON object in a text')
}

// https://platform.openai.com/docs/api-reference/chat/create#chat_create-tools and …/guides/structured-outputs
function toolRules(body: Obj, rule: Rule): void {
  const tools = body.tools as readonly Obj[] | undefined
  rule(tools?.length === 0, 'C12 an empty list of tools')
  // "'tool_choice' is only allowed when 'tools' are specified"
  rule('tool_choice' in body && tools === undefined, 'C12 a choice without tools')
  const functions = (tools ?? []).map((tool) => tool.function as Obj)
  const choice = body.tool_choice
  if (isObject(choice)) {
    const { name } = choice.function as Obj
    rule(!functions.some((tool) => tool.name === name), 'C12 a choice that is not listed')
  }
  for (const { name, parameters, strict } of functions) {
    rule(!NAME.test(String(name)), 'C10 a name of another form')
    rule((parameters as Obj).type !== 'object', 'C12 parameters that are no object')
    rule(strict === true && !isClosed(parameters as Obj), 'C12 a strict schema that is open')
  }
  const format = body.response_format as Obj | undefined
  if (format) rule(!NAME.test(String((format.json_schema as Obj).name)), 'C10 a name of another form')
}

function isClosed({ properties, required, additionalProperties }: Obj): boolean {
  const names = Object.keys(properties ?? {})
  return additionalProperties === false && names.every((name) => (required as readonly string[]).includes(name))
}

const hostRules: Readonly<Record<string, (body: Obj, messages: readonly Obj[], rule: Rule) => void>> = {
  // https://docs.mistral.ai/api/: unknown fields are refused ("Extra inputs are not permitted").
  mistral(body, messages, rule) {
    const known = [
      'model',
      'messages',
      'stream',
      'max_tokens',
      'temperature',
      'tools',
      'tool_choice',
      'response_format',
    ]
    rule(
      Object.keys(body).some((field) => !known.includes(field)),
      'C15 a field that Mistral does not know',
    )
    const ids = messages.flatMap((message) =>
      ((message.tool_calls ?? []) as readonly Obj[]).map(({ id }) => String(id)),
    )
    rule(!ids.every((id) => /^[a-zA-Z0-9]{9}$/.test(id)), 'C15 an id that is not nine letters or digits')
    // "Unexpected role 'user' after role 'tool'"
    rule(
      messages.some(({ role }, at) => role === 'user' && messages[at - 1]?.role === 'tool'),
      'C15 a user right after a tool',
    )
  },
  // https://api-docs.deepseek.com/guides/thinking_mode#tool-calls
  deepseek: reasonedCalls,
  // "thinking is enabled but reasoning_content is missing in assistant tool call message"
  moonshot: reasonedCalls,
  // https://openrouter.ai/docs/guides/best-practices/reasoning-tokens: one of the following, not both.
  openrouter(body, _messages, rule) {
    const reasoning = (body.reasoning ?? {}) as Obj
    rule('effort' in reasoning && 'max_tokens' in reasoning, 'C17 both an effort and a budget')
  },
  // https://console.groq.com/docs/openai: messages[].name is refused.
  groq(_body, messages, rule) {
    rule(
      messages.some((message) => 'name' in message || 'reasoning_content' in message),
      'C18 a field that Groq refuses',
    )
  },
}

function reasonedCalls({ thinking }: Obj, messages: readonly Obj[], rule: Rule): void {
  if (isObject(thinking) && thinking.type === 'disabled') return
  const bare = messages.some((message) => 'tool_calls' in message && (message.reasoning_content ?? '') === '')
  rule(bare, 'C16 a call without its reasoning')
}

function isObject(value: unknown): value is Obj {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
