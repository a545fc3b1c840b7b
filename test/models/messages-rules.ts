// The rules by which Anthropic refuses a request, as a checker of bodies: what a strict host would say. Written from the
// published pages named at each rule, not from our encoder.
type Obj = { readonly [key: string]: unknown }
type Said = { readonly role: string; readonly content: readonly Obj[] }

const NAME = /^[a-zA-Z0-9_-]{1,64}$/
const ID = /^[a-zA-Z0-9_-]+$/

/** What a strict host would refuse this body for; empty when it takes it. */
export function refusals(text: string): readonly string[] {
  const body = JSON.parse(text) as Obj
  const messages = body.messages as readonly Said[]
  const found: string[] = []
  const rule = (broken: boolean, why: string): void => {
    if (broken) found.push(why)
  }
  // Half of a surrogate pair is no JSON text: RFC 8259 section 8.2; the API answers "not valid JSON".
  rule(/(?<!\\)(\\\\)*\\ud[89ab][0-9a-f]{2}(?!\\ud[c-f])/i.test(text), 'M1 half of a surrogate pair')
  messageRules(messages, rule)
  messages.forEach((said, at) => blockRules(said, messages[at - 1], messages[at + 1], rule))
  uniqueIds(messages, rule)
  toolRules(body, rule)
  thinkingRules(body, messages, rule)
  generationRules(body, rule)
  // https://platform.claude.com/docs/en/build-with-claude/prompt-caching: up to 4 cache breakpoints.
  rule((text.match(/"cache_control":\{/g) ?? []).length > 4, 'M15 more than four cache marks')
  return found
}

type Rule = (broken: boolean, why: string) => void

// https://platform.claude.com/docs/en/api/messages/create: max_tokens, messages; the last message of the assistant is a
// prefill, refused since 4.6: https://platform.claude.com/docs/en/models/opus-5/migration-guide
function messageRules(messages: readonly Said[], rule: Rule): void {
  rule(messages.length === 0, 'M2 no messages')
  rule(messages[0]?.role !== 'user', 'M3 the first message is not of the user')
  rule(messages.at(-1)?.role !== 'user', 'M4 the last message is a prefill')
  rule(
    messages.some(({ role }, at) => role === messages[at + 1]?.role),
    'M5 two messages of the same role',
  )
}

// https://platform.claude.com/docs/en/agents-and-tools/tool-use/handle-tool-calls: results right after, and first.
function blockRules({ role, content }: Said, before: Said | undefined, after: Said | undefined, rule: Rule): void {
  rule(content.length === 0, 'M6 a message without content')
  const answered = (after?.content ?? []).filter(({ type }) => type === 'tool_result').map((b) => b.tool_use_id)
  const asked = (before?.content ?? []).filter(({ type }) => type === 'tool_use').map((b) => b.id)
  const results = content.filter(({ type }) => type === 'tool_result')
  rule(new Set(results.map((b) => b.tool_use_id)).size !== results.length, 'M9 two results for one call')
  // https://platform.claude.com/docs/en/agents-and-tools/tool-use/server-tools: the result is in the same turn as its call.
  content.forEach((block, at) => {
    const given = content.slice(at + 1).some((b) => b.tool_use_id === block.id)
    rule(block.type === 'server_tool_use' && !given, 'M30 a call of a server tool without its result')
    const result = String(block.type).endsWith('_tool_result')
    rule(result && !content.slice(0, at).some((b) => b.id === block.tool_use_id), 'M31 a result of no server tool')
  })
  content.forEach((block, at) => {
    if (block.type === 'text') rule(String(block.text).trim() === '', 'M7 a text block without text')
    if (block.type === 'tool_use') {
      rule(role !== 'assistant' || !answered.includes(block.id), 'M8 a call without a result in the next message')
      rule(!isObj(block.input), 'M10 arguments that are no object')
      rule(!ID.test(String(block.id)) || !NAME.test(String(block.name)), 'M11 an id or name of another form')
    }
    if (block.type === 'tool_result') {
      rule(role !== 'user' || !asked.includes(block.tool_use_id), 'M8 a result without its call in the message before')
      rule(
        content.slice(0, at).some(({ type }) => type !== 'tool_result'),
        'M9 something before a result',
      )
      if (Array.isArray(block.content)) resultRules(role, block, rule)
      else rule(String(block.content).trim() === '', 'M9 an empty result')
    }
    if (block.type === 'image' || block.type === 'document') fileRules(role, block, rule)
    if (isThought(block)) {
      rule(role !== 'assistant' || at === content.length - 1, 'M12 a thought at the end, or of the user')
      rule(block.type === 'thinking' && !block.signature, 'M12 a thought without its signature')
      rule(block.cache_control !== undefined, 'M15 a cache mark on a thought')
    }
  })
}

// https://platform.claude.com/docs/en/agents-and-tools/tool-use/handle-tool-calls: a result may be a list of texts, images and
// documents; "all content must be type "text" if "is_error" is true".
function resultRules(role: string, block: Obj, rule: Rule): void {
  const content = block.content as readonly Obj[]
  rule(content.length === 0, 'M9 an empty result')
  rule(block.is_error === true && content.some(({ type }) => type !== 'text'), 'M17 an error with more than text')
  for (const each of content) {
    if (each.type === 'text') rule(String(each.text).trim() === '', 'M7 a text block without text')
    else fileRules(role, each, rule)
  }
}

function uniqueIds(messages: readonly Said[], rule: Rule): void {
  const ids = messages.flatMap(({ content }) => content.filter(({ type }) => type === 'tool_use').map(({ id }) => id))
  rule(new Set(ids).size !== ids.length, 'M11 one id for two calls')
}

// https://platform.claude.com/docs/en/build-with-claude/vision and …/pdf-support
function fileRules(role: string, { type, source }: Obj, rule: Rule): void {
  const { type: of, media_type: media, data, url, file_id: id } = source as Readonly<Record<string, string>>
  rule(type !== 'image' && type !== 'document', 'M16 a file of another kind')
  // …/vision#url-based-image-example and …/build-with-claude/files
  if (of === 'url' || of === 'file') return rule(role !== 'user' || !(url ?? id), 'M16 a file that is nowhere')
  const taken = type === 'image' ? /^image\/(jpeg|png|gif|webp)$/ : /^application\/pdf$/
  rule(role !== 'user' || !taken.test(media ?? '') || data === '', 'M16 a file of another kind')
}

// https://platform.claude.com/docs/en/agents-and-tools/tool-use/define-tools
function toolRules({ tools, tool_choice: choice }: Obj, rule: Rule): void {
  const listed = (tools ?? []) as readonly { name: string; input_schema: Obj }[]
  rule(tools !== undefined && listed.length === 0, 'M13 an empty list of tools')
  rule(new Set(listed.map(({ name }) => name)).size !== listed.length, 'M13 two tools of one name')
  rule(
    listed.some(({ name, input_schema: schema }) => !NAME.test(name) || schema.type !== 'object'),
    'M13 a tool of another form',
  )
  const { type, name } = (choice ?? {}) as { type?: string; name?: string }
  rule(type !== undefined && listed.length === 0, 'M13 a choice without tools')
  rule(type === 'tool' && !listed.some((tool) => tool.name === name), 'M13 a choice of a tool that is not listed')
}

// https://platform.claude.com/docs/en/build-with-claude/extended-thinking
function thinkingRules(body: Obj, messages: readonly Said[], rule: Rule): void {
  const { max_tokens: max, thinking, tool_choice: choice, temperature, model } = body
  const { type, budget_tokens: budget } = (thinking ?? {}) as { type?: string; budget_tokens?: number }
  rule(!(Number.isInteger(max) && Number(max) >= 1), 'M2 no max_tokens')
  rule(type === 'enabled' && !(Number(budget) >= 1024 && Number(budget) < Number(max)), 'M14 a budget out of bounds')
  const on = type === 'enabled' || type === 'adaptive' || (type === undefined && version(String(model)) >= 500)
  rule(on && isObj(choice) && !['auto', 'none'].includes(String(choice.type)), 'M14 a forced tool while thinking')
  rule(on && temperature !== undefined && temperature !== 1, 'M14 a temperature while thinking')
  const said = messages.filter(({ role }) => role === 'assistant')
  rule(!on && (said.at(-1)?.content ?? []).some(isThought), 'M14 a thought while thinking is off')
  if (type !== 'enabled' || messages.at(-1)?.content[0]?.type !== 'tool_result') return
  let at = messages.length - 1
  while (at > 1 && messages[at]?.content[0]?.type === 'tool_result') at -= 2
  rule(!isThought(messages[at + 1]?.content[0] ?? {}), 'M14 a loop of calls that began without a thought')
}

// https://platform.claude.com/docs/en/build-with-claude/adaptive-thinking, …/models/opus-5-5/migration-guide
function generationRules({ model, thinking, temperature, top_p: topP, output_config: config }: Obj, rule: Rule): void {
  const { type } = (thinking ?? {}) as { type?: string }
  const v = version(String(model))
  rule(type === 'adaptive' && v < 406, 'M17 adaptive thinking before 4.6')
  rule(type === 'enabled' && v > 406, 'M17 a budget after 4.6')
  rule(type === 'disabled' && v > 500, 'M17 thinking that cannot be switched off')
  rule(temperature !== undefined && temperature !== 1 && v > 406, 'M17 a temperature after 4.6')
  rule(topP !== undefined && v > 406, 'M17 a top_p after 4.6')
  rule(topP !== undefined && temperature !== undefined, 'M17 a top_p beside a temperature')
  rule(isObj(config) && config.effort !== undefined && v < 405, 'M17 an effort before 4.5')
}

/** 4.6 as 406; families that always think as the newest. */
function version(model: string): number {
  if (/fable|mythos/.test(model)) return 599
  const [, major = '0', minor = '0'] = /-(\d)(?:-(\d{1,2})(?!\d))?/.exec(model) ?? []
  return Number(major) * 100 + Number(minor)
}

function isThought({ type }: Obj): boolean {
  return type === 'thinking' || type === 'redacted_thinking'
}

function isObj(value: unknown): value is Obj {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
