// The published rules of Anthropic Messages, as data. Only rules that hold for all models.
import { fieldsOf } from './fields.ts'
import { firstRefusal, type DialectRule, firstRepeated, rootChoice } from './provider-rule.ts'
import { isObject, asList, asString, type JsonObject } from '../view/untrusted-json.ts'
import type { ProviderRefusal } from './answer-encoder.ts'

const API = 'https://platform.claude.com/docs/en/api/messages'
const TOOLS = 'https://platform.claude.com/docs/en/agents-and-tools/tool-use/handle-tool-calls'
const DEFINE = 'https://platform.claude.com/docs/en/agents-and-tools/tool-use/define-tools'
const THINKING = 'https://platform.claude.com/docs/en/build-with-claude/extended-thinking'
const CACHING = 'https://platform.claude.com/docs/en/build-with-claude/prompt-caching'
const NAMES = /^[a-zA-Z0-9_-]{1,128}$/
const IMAGES = ['image/jpeg', 'image/png', 'image/gif', 'image/webp']

function hasThinking(body: Readonly<Record<string, unknown>>): boolean {
  const type = fieldsOf(body.thinking).type
  return type === 'enabled' || type === 'adaptive'
}

const shape: readonly DialectRule[] = [
  {
    id: 'messages-1',
    rule: 'Every request names the version of the API in the header anthropic-version.',
    source: 'https://platform.claude.com/docs/en/api/versioning',
    check: ({ headers }) =>
      headers['anthropic-version'] ? null : { message: 'anthropic-version: header is required' },
  },
  {
    id: 'messages-2',
    rule: 'max_tokens is required.',
    source: API,
    check: ({ body }) => (Number.isInteger(body.max_tokens) ? null : { message: 'max_tokens: Field required' }),
  },
  {
    id: 'messages-3',
    rule: 'There is at least one message, and each is of the user or of the assistant: instructions go into system.',
    source: API,
    check: ({ body }) => {
      const list = asList(body.messages)
      if (list.length === 0) return { message: 'messages: at least one message is required' }
      const role = list.map((entry) => fieldsOf(entry).role).find((found) => found !== 'user' && found !== 'assistant')
      if (role === undefined) return null
      return {
        message: `messages: Unexpected role "${asString(role)}". The Messages API accepts a top-level \`system\` parameter, not "system" as an input message role.`,
      }
    },
  },
  {
    id: 'messages-4',
    rule: 'The first message is of the user (the first-party API lets it pass by now; Bedrock and others do not).',
    source: 'https://github.com/anthropics/anthropic-sdk-typescript/issues/622',
    check: ({ body }) =>
      turnsIn(body)[0]?.role === 'user' ? null : { message: 'messages: first message must use the "user" role' },
  },
  {
    id: 'messages-5',
    rule: 'Every message but a last one of the assistant has content.',
    source: 'https://github.com/anthropics/claude-code/issues/3196',
    check: ({ body }) =>
      firstRefusal(asList(body.messages), (entry, at) => {
        const { role } = fieldsOf(entry)
        const last = at === asList(body.messages).length - 1 && role === 'assistant'
        if (last || blocksIn(entry).some((block) => block.type !== 'text' || block.text !== '')) return null
        const wrong = 'all messages must have non-empty content except for the optional final assistant message'
        return { message: `messages.${at}: ${wrong}` }
      }),
  },
  {
    id: 'messages-6',
    rule: 'No text block is empty or blank.',
    source: 'https://github.com/anthropics/claude-code/issues/23440',
    check: ({ body }) => {
      const texts = allBlocks(body)
        .filter((block) => block.type === 'text')
        .map((block) => asString(block.text))
      if (texts.includes('')) return { message: 'messages: text content blocks must be non-empty' }
      const blank = texts.some((text) => text.trim() === '')
      return blank ? { message: 'messages: text content blocks must contain non-whitespace text' } : null
    },
  },
  {
    id: 'messages-7',
    rule: 'What the assistant is made to begin with does not end with white space.',
    source: 'https://github.com/crewAIInc/crewAI/pull/4620',
    check: ({ body }) => {
      const turn = turnsIn(body).at(-1)
      const text = asString(turn?.blocks.at(-1)?.text)
      const wrong = turn?.role === 'assistant' && text !== text.trimEnd()
      return wrong ? { message: 'messages: final assistant content cannot end with trailing whitespace' } : null
    },
  },
  {
    id: 'messages-8',
    rule: 'An image in base64 is a JPEG, PNG, GIF or WebP.',
    source: 'https://platform.claude.com/docs/en/build-with-claude/vision',
    check: ({ body }) =>
      checkBlocks(body, (block, at) => {
        const source = fieldsOf(block.source)
        if (block.type !== 'image' || source.type !== 'base64' || IMAGES.includes(asString(source.media_type)))
          return null
        const wrong = "Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'"
        return { message: `${at}.image.source.base64.media_type: ${wrong}` }
      }),
  },
  {
    id: 'messages-9',
    rule: 'At most four blocks are marked for the cache.',
    source: CACHING,
    check: ({ body }) => {
      const marked = [...asList(body.tools), ...asList(body.system), ...allBlocks(body), body]
      const found = marked.filter((block) => isObject(fieldsOf(block).cache_control)).length
      if (found <= 4) return null
      return { message: `A maximum of 4 blocks with cache_control may be provided. Found ${found}.` }
    },
  },
  {
    id: 'messages-10',
    rule: 'A thinking block cannot be marked for the cache.',
    source: CACHING,
    check: ({ body }) =>
      checkBlocks(body, (block, at) => {
        const wrong = isThinking(block) && 'cache_control' in block
        return wrong ? { message: `${at}.${asString(block.type)}.cache_control: Extra inputs are not permitted` } : null
      }),
  },
]

const calls: readonly DialectRule[] = [
  {
    id: 'messages-11',
    rule: 'Calls stand only in messages of the assistant, and results only in those of the user.',
    source: TOOLS,
    check: ({ body }) =>
      firstRefusal(turnsIn(body), ({ role, at, blocks }) => {
        const wrong = role === 'user' ? 'tool_use' : 'tool_result'
        const home = role === 'user' ? 'assistant' : 'user'
        if (!blocks.some((block) => block.type === wrong)) return null
        return { message: `messages.${at}: \`${wrong}\` blocks can only be in \`${home}\` messages` }
      }),
  },
  {
    id: 'messages-12',
    rule: 'Every call has its result in the next message.',
    source: TOOLS,
    check: ({ body }) => missingResults(body, (blocks) => blocks.filter((block) => block.type === 'tool_result')),
  },
  {
    id: 'messages-13',
    rule: 'Results stand first in their message, before any text.',
    source: TOOLS,
    check: ({ body }) =>
      missingResults(body, (blocks) => {
        const end = blocks.findIndex((block) => block.type !== 'tool_result')
        return end < 0 ? blocks : blocks.slice(0, end)
      }),
  },
  {
    id: 'messages-14',
    rule: 'No text follows a call in its message; thoughts between calls stay where they were.',
    source:
      'https://github.com/anomalyco/opencode/blob/dev/packages/llm/test/fixtures/recordings/anthropic-messages/rejects-malformed-assistant-tool-order-without-patch.json',
    check: ({ body }) =>
      firstRefusal(turnsIn(body), ({ at, blocks }) => {
        const begin = blocks.findIndex((block) => block.type === 'tool_use')
        const rest = begin < 0 ? [] : blocks.slice(begin)
        return rest.every((block) => block.type !== 'text') ? null : { message: missingResultText(at, idsIn(rest)) }
      }),
  },
  {
    id: 'messages-15',
    rule: 'Every result answers a call of the message before it.',
    source: TOOLS,
    check: ({ body }) => {
      const turns = turnsIn(body)
      return firstRefusal(turns, ({ at, blocks }, index) => {
        const known = idsIn(turns[index - 1]?.blocks ?? [])
        return firstRefusal(blocks, (block, place) => {
          const id = asString(block.tool_use_id)
          if (block.type !== 'tool_result' || known.includes(id)) return null
          const why = 'Each `tool_result` block must have a corresponding `tool_use` block in the previous message.'
          return {
            message: `messages.${at}.content.${place}: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${id}. ${why}`,
          }
        })
      })
    },
  },
  {
    id: 'messages-16',
    rule: 'The ids of calls are unique in a conversation.',
    source: 'https://github.com/anthropics/claude-code/issues/28515',
    check: ({ body }) =>
      firstRepeated(turnsIn(body).flatMap(({ blocks }) => idsIn(blocks))) === undefined
        ? null
        : { message: 'messages: `tool_use` ids must be unique' },
  },
  {
    id: 'messages-17',
    rule: 'A call has one result and no second.',
    source: 'https://github.com/anthropics/claude-code/issues/14110',
    check: ({ body }) =>
      firstRefusal(turnsIn(body), ({ at, blocks }) => {
        const results = blocks.filter((block) => block.type === 'tool_result')
        const twice = firstRepeated(results.map((block) => asString(block.tool_use_id)))
        if (twice === undefined) return null
        const wrong = 'each tool_use must have a single result. Found multiple `tool_result` blocks with id:'
        return { message: `messages.${at}: ${wrong} ${twice}` }
      }),
  },
  {
    id: 'messages-18',
    rule: 'The input of a call is an object.',
    source: API,
    check: ({ body }) =>
      checkBlocks(body, (block, at) => {
        if (block.type !== 'tool_use' || isObject(block.input)) return null
        return { message: `${at}.tool_use.input: Input should be a valid dictionary` }
      }),
  },
  {
    id: 'messages-19',
    rule: 'The id of a call is made of letters, digits, _ and -.',
    source: 'https://github.com/HKUDS/nanobot/pull/4356',
    check: ({ body }) =>
      checkBlocks(body, (block, at) => {
        if (block.type !== 'tool_use' || /^[a-zA-Z0-9_-]+$/.test(asString(block.id))) return null
        return { message: `${at}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'` }
      }),
  },
]

const tools: readonly DialectRule[] = [
  {
    id: 'messages-20',
    rule: 'The name of a tool is made of letters, digits, _ and -, at most 128 of them.',
    source: DEFINE,
    check: ({ body }) =>
      firstRefusal(toolsIn(body), ({ name }, at) => {
        if (NAMES.test(asString(name))) return null
        return { message: `tools.${at}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'` }
      }),
  },
  {
    id: 'messages-21',
    rule: 'No two tools have the same name.',
    source: 'https://github.com/tailcallhq/forgecode/issues/892',
    check: ({ body }) =>
      firstRepeated(toolsIn(body).map(({ name }) => asString(name))) === undefined
        ? null
        : { message: 'tools: Tool names must be unique.' },
  },
  {
    id: 'messages-22',
    rule: 'The schema of a tool is one of an object.',
    source: DEFINE,
    check: ({ body }) =>
      firstRefusal(toolsIn(body), (tool, at) => {
        const known = tool.type !== undefined && tool.type !== 'custom'
        if (known || fieldsOf(tool.input_schema).type === 'object') return null
        return { message: `tools.${at}.custom.input_schema.type: Input should be 'object'` }
      }),
  },
  {
    id: 'messages-23',
    rule: 'A tool that must be used is one of the tools given.',
    source: DEFINE,
    check: ({ body }) => {
      const { type, name } = fieldsOf(body.tool_choice)
      const names = toolsIn(body).map((tool) => asString(tool.name))
      if (type === undefined) return null
      if (names.length === 0) return { message: 'tool_choice: tool_choice may only be specified while providing tools' }
      const wrong = type === 'tool' && !names.includes(asString(name))
      return wrong ? { message: `Tool '${asString(name)}' not found in provided tools` } : null
    },
  },
]

const thinking: readonly DialectRule[] = [
  {
    id: 'messages-24',
    rule: 'A budget for thinking is at least 1,024 tokens.',
    source: THINKING,
    check: ({ body }) => {
      const { type, budget_tokens: budget } = fieldsOf(body.thinking)
      if (type !== 'enabled' || (typeof budget === 'number' && budget >= 1_024)) return null
      return { message: 'thinking.enabled.budget_tokens: Input should be greater than or equal to 1024' }
    },
  },
  {
    id: 'messages-25',
    rule: 'max_tokens is more than the budget for thinking, unless thinking is interleaved.',
    source: THINKING,
    check: ({ body, headers }) => {
      const { type, budget_tokens: budget } = fieldsOf(body.thinking)
      const free = type !== 'enabled' || (headers['anthropic-beta'] ?? '').includes('interleaved-thinking')
      if (free || Number(body.max_tokens) > Number(budget)) return null
      return { message: '`max_tokens` must be greater than `thinking.budget_tokens`.' }
    },
  },
  {
    id: 'messages-26',
    rule: 'With thinking, the temperature is 1 or not given.',
    source: THINKING,
    check: ({ body }) => {
      const cool = hasThinking(body) && body.temperature !== undefined && body.temperature !== 1
      return cool
        ? { message: '`temperature` may only be set to 1 when thinking is enabled or in adaptive mode.' }
        : null
    },
  },
  {
    id: 'messages-27',
    rule: 'With thinking, no tool can be forced.',
    source: THINKING,
    check: ({ body }) => {
      const { type } = fieldsOf(body.tool_choice)
      const forced = hasThinking(body) && (type === 'any' || type === 'tool')
      return forced ? { message: 'Thinking may not be enabled when tool_choice forces tool use.' } : null
    },
  },
  {
    id: 'messages-28',
    rule: 'Thinking blocks come back as they were sent, with the signature that they had.',
    source: THINKING,
    check: ({ body, issued }) =>
      checkBlocks(body, (block, at) => {
        if (!isThinking(block)) return null
        const redacted = block.type === 'redacted_thinking'
        const texts = issued.signatures.get(asString(redacted ? block.data : block.signature))
        if (texts?.has(redacted ? '' : asString(block.thinking))) return null
        return { message: `${at}: Invalid \`${redacted ? 'data' : 'signature'}\` in \`${asString(block.type)}\` block` }
      }),
  },
  {
    id: 'messages-29',
    rule: 'With a budget for thinking, the calls under way began with a thinking block.',
    source: THINKING,
    check: ({ body }) => {
      const begin = fieldsOf(body.thinking).type === 'enabled' ? openCallsTurn(body) : null
      const block = begin?.blocks[0]
      if (begin === null || block === undefined || isThinking(block)) return null
      return {
        message:
          `messages.${begin.at}.content.0.type: Expected \`thinking\` or \`redacted_thinking\`, but found \`${asString(block.type)}\`. ` +
          'When `thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks).',
      }
    },
  },
]

const IMAGE_CHARS_MAX = 5_242_880

const bounds: readonly DialectRule[] = [
  {
    id: 'messages-30',
    rule: 'The schema of a tool has no oneOf, allOf or anyOf at its top.',
    source: 'https://github.com/anthropics/claude-code/issues/27337',
    check: ({ body }) =>
      firstRefusal(toolsIn(body), ({ input_schema: schema }, at) => {
        if (!['oneOf', 'allOf', 'anyOf'].includes(rootChoice(schema) ?? '')) return null
        const wrong = 'input_schema does not support oneOf, allOf, or anyOf at the top level'
        return { message: `tools.${at}.custom.input_schema: ${wrong}` }
      }),
  },
  {
    id: 'messages-31',
    rule: 'An image has at most 5 MB in base64 (the first-party API takes more by now; Bedrock and others do not).',
    source: 'https://github.com/anthropics/claude-code/issues/10612',
    check: ({ body }) =>
      checkBlocks(body, (block, at) => {
        const { length } = asString(fieldsOf(block.source).data)
        if (block.type !== 'image' || length <= IMAGE_CHARS_MAX) return null
        const wrong = `image exceeds 5 MB maximum: ${length} bytes > ${IMAGE_CHARS_MAX} bytes`
        return { message: `${at}.image.source.base64: ${wrong}` }
      }),
  },
  {
    id: 'messages-32',
    rule: 'The result of a call that failed holds only text.',
    source: 'https://github.com/vellum-ai/vellum-assistant/pull/18387',
    check: ({ body }) =>
      checkBlocks(body, (block, at) => {
        if (block.is_error !== true || nestedBlocks(block).every(({ type }) => type === 'text')) return null
        return { message: `${at}: all content must be type "text" if "is_error" is true` }
      }),
  },
]

const served: readonly DialectRule[] = [
  {
    id: 'messages-33',
    rule: 'A call of a tool that the provider runs has its result after it in the same message, and a result has its call.',
    source: 'https://platform.claude.com/docs/en/agents-and-tools/tool-use/server-tools',
    check: ({ body }) =>
      firstRefusal(asList(body.messages), (message, at) => {
        const blocks = blocksIn(message)
        return firstRefusal(blocks, (block, place) => {
          const result = asString(block.type).endsWith('_tool_result')
          if (block.type !== 'server_tool_use' && !result) return null
          const paired = result
            ? blocks.slice(0, place).some(({ id }) => id === block.tool_use_id)
            : blocks.slice(place + 1).some(({ tool_use_id: id }) => id === block.id)
          const wrong = 'server_tool_use and its result must stand in one message'
          return paired ? null : { message: `messages.${at}.content.${place}: ${wrong}` }
        })
      }),
  },
]

export const messagesRules: readonly DialectRule[] = [...shape, ...calls, ...tools, ...thinking, ...bounds, ...served]

function isThinking(block: ContentBlock): boolean {
  return block.type === 'thinking' || block.type === 'redacted_thinking'
}

function idsIn(blocks: readonly ContentBlock[]): readonly string[] {
  return blocks.filter((block) => block.type === 'tool_use').map((block) => asString(block.id))
}

function missingResultText(at: number, ids: readonly string[]): string {
  const why = 'Each `tool_use` block must have a corresponding `tool_result` block in the next message.'
  return `messages.${at}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${ids.join(', ')}. ${why}`
}

function missingResults(
  body: ContentBlock,
  answers: (blocks: readonly ContentBlock[]) => readonly ContentBlock[],
): { message: string } | null {
  const turns = turnsIn(body)
  for (const [index, { at, blocks }] of turns.entries()) {
    const given = answers(turns[index + 1]?.blocks ?? []).map((block) => asString(block.tool_use_id))
    const missing = idsIn(blocks).filter((id) => !given.includes(id))
    if (missing.length > 0) return { message: missingResultText(at, missing) }
  }
  return null
}

/** All blocks, also those inside results. */
function allBlocks(body: ContentBlock): readonly ContentBlock[] {
  return asList(body.messages).flatMap((entry) => blocksIn(entry).flatMap((block) => [block, ...nestedBlocks(block)]))
}

function nestedBlocks(block: ContentBlock): readonly ContentBlock[] {
  return block.type === 'tool_result' ? asList(block.content).map(fieldsOf) : []
}

// Reads a body for the rules: turns with their blocks, joined as the provider joins them.

type ContentBlock = JsonObject

/** `at` is the index of its first message. */
type RoleTurn = { readonly role: string; readonly at: number; readonly blocks: readonly ContentBlock[] }

function blocksIn(message: unknown): readonly ContentBlock[] {
  const { content } = fieldsOf(message)
  return typeof content === 'string' ? [{ type: 'text', text: content }] : asList(content).map(fieldsOf)
}

/** Consecutive messages of one role are one turn. */
function turnsIn(body: JsonObject): readonly RoleTurn[] {
  const turns: RoleTurn[] = []
  for (const [at, message] of asList(body.messages).entries()) {
    const role = asString(fieldsOf(message).role)
    const last = turns.at(-1)
    if (last?.role === role) turns[turns.length - 1] = { ...last, blocks: [...last.blocks, ...blocksIn(message)] }
    else turns.push({ role, at, blocks: blocksIn(message) })
  }
  return turns
}

/** Visits every block, also inside results; `at` is the provider's path to it. */
function checkBlocks(
  body: JsonObject,
  look: (block: ContentBlock, at: string) => ProviderRefusal | null,
): ProviderRefusal | null {
  return firstRefusal(asList(body.messages), (message, at) =>
    firstRefusal(blocksIn(message), (block, place) => {
      const name = `messages.${at}.content.${place}`
      const inner = block.type === 'tool_result' ? asList(block.content).map(fieldsOf) : []
      return look(block, name) ?? firstRefusal(inner, (part, deep) => look(part, `${name}.tool_result.content.${deep}`))
    }),
  )
}

/** The assistant turn that began the calls in progress; null if there are none. */
function openCallsTurn(body: JsonObject): RoleTurn | null {
  const turns = turnsIn(body)
  let at = turns.length - 1
  while (turns[at]?.role === 'user' && turns[at]?.blocks[0]?.type === 'tool_result') at -= 2
  return at === turns.length - 1 ? null : (turns[at + 1] ?? null)
}

function toolsIn(body: JsonObject): readonly JsonObject[] {
  return asList(body.tools).map(fieldsOf)
}
