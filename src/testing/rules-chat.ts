// The published rules of Chat Completions, as data: OpenAI's own, and one of compatible hosts (arguments must parse), because a
// conversation may go to any of them.
import { fieldsOf } from './fields.ts'
import {
  badRootRefusal,
  badNameRefusal,
  emptyArrayRefusal,
  firstRefusal,
  type DialectRule,
  firstRepeated,
  tooLongRefusal,
  whyNotStrict,
} from './provider-rule.ts'
import type { ProviderRefusal } from './answer-encoder.ts'
import { type JsonObject, asList, parseJson, asString } from '../view/untrusted-json.ts'

const API = 'https://platform.openai.com/docs/api-reference/chat/create'
const STRICT = 'https://developers.openai.com/api/docs/guides/structured-outputs'
const ROLES = ['system', 'assistant', 'user', 'function', 'tool', 'developer']
/** Reasoning models, which refuse `max_tokens`. */
const REASONING = /(^|\/)(o\d|gpt-5)/

const conversation: readonly DialectRule[] = [
  {
    id: 'chat-1',
    rule: 'There is at least one message.',
    source: API,
    check: ({ body }) => (asList(body.messages).length > 0 ? null : emptyArrayRefusal('messages')),
  },
  {
    id: 'chat-2',
    rule: 'Every message has one of the six roles.',
    source: API,
    check: ({ body }) =>
      firstRefusal(messagesIn(body), ({ role }, at) => {
        if (ROLES.includes(asString(role))) return null
        const message = `Invalid value: '${asString(role)}'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'.`
        return { message, param: `messages[${at}].role`, code: 'invalid_value' }
      }),
  },
  {
    id: 'chat-3',
    rule: 'Content is only null in a message of the assistant that has calls.',
    source: API,
    check: ({ body }) =>
      firstRefusal(messagesIn(body), ({ role, content, tool_calls: calls, refusal }, at) => {
        const free = role === 'assistant' && (asList(calls).length > 0 || asString(refusal) !== '')
        if (free || (content !== null && content !== undefined)) return null
        const message = "Invalid value for 'content': expected a string, got null."
        return { message, param: `messages.[${at}].content` }
      }),
  },
  {
    id: 'chat-4',
    rule: 'Images stand only in messages of the user.',
    source: 'https://github.com/strands-agents/sdk-python/issues/320',
    check: ({ body }) =>
      firstRefusal(messagesIn(body), ({ role, content }, at) => {
        const shows = asList(content).some((part) => fieldsOf(part).type === 'image_url')
        if (role === 'user' || !shows) return null
        const why = `but this message with role '${asString(role)}' contains an image URL.`
        const message = `Invalid 'messages[${at}]'. Image URLs are only allowed for messages with role 'user', ${why}`
        return { message, param: `messages[${at}]`, code: 'invalid_value' }
      }),
  },
]

const calls: readonly DialectRule[] = [
  {
    id: 'chat-5',
    rule: 'A list of calls is not empty.',
    source: API,
    check: ({ body }) =>
      firstRefusal(messagesIn(body), ({ tool_calls: list }, at) =>
        Array.isArray(list) && list.length === 0 ? emptyArrayRefusal(`messages[${at}].tool_calls`) : null,
      ),
  },
  {
    id: 'chat-6',
    rule: 'A message with calls is followed by a tool message for each of them.',
    source: 'https://github.com/agno-agi/agno/issues/4345',
    check: ({ body }) =>
      firstRefusal(messagesIn(body), (message, at) => {
        const answered = answersAfter(body, at)
        const missing = callsIn(message)
          .map(({ id }) => asString(id))
          .filter((id) => !answered.includes(id))
        if (missing.length === 0) return null
        const wrong = "An assistant message with 'tool_calls' must be followed by tool messages responding to each"
        return {
          message: `${wrong} 'tool_call_id'. The following tool_call_ids did not have response messages: ${missing.join(', ')}`,
          param: `messages.[${at}].role`,
        }
      }),
  },
  {
    id: 'chat-7',
    rule: 'A tool message answers a call of the message before it.',
    source: 'https://github.com/simonw/llm/issues/937',
    check: ({ body }) =>
      firstRefusal(messagesIn(body), ({ role, tool_call_id: id }, at) => {
        if (role !== 'tool' || callsBefore(body, at).includes(asString(id))) return null
        const wrong = "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
        return { message: `Invalid parameter: ${wrong}`, param: `messages.[${at}].role` }
      }),
  },
  {
    id: 'chat-8',
    rule: 'The arguments of a call are a string.',
    source: API,
    check: ({ body }) =>
      checkCalls(body, (call, at) => {
        const given = fieldsOf(call.function).arguments
        if (typeof given === 'string') return null
        const param = `${at}.function.arguments`
        const got = given === undefined ? 'nothing' : Array.isArray(given) ? 'an array' : 'an object'
        return {
          message: `Invalid type for '${param}': expected a string, but got ${got} instead.`,
          param,
          code: 'invalid_type',
        }
      }),
  },
  {
    id: 'chat-9',
    rule: 'The arguments of a call parse as JSON (vLLM and others parse the whole conversation again).',
    source: 'https://github.com/vllm-project/vllm/issues/43995',
    check: ({ body }) =>
      checkCalls(body, (call, at) => {
        const given = asString(fieldsOf(call.function).arguments)
        return parseJson(given) === undefined ? { message: `Expecting value in '${at}.function.arguments'` } : null
      }),
  },
  {
    id: 'chat-10',
    rule: 'The id of a call has 1 to 40 characters.',
    source: 'https://github.com/agno-agi/agno/issues/5382',
    check: ({ body }) =>
      checkCalls(body, (call, at) => {
        const param = `${at}.id`
        const id = asString(call.id)
        const missing = {
          message: `Missing required parameter: '${param}'.`,
          param,
          code: 'missing_required_parameter',
        }
        return id === '' ? missing : tooLongRefusal(param, id, 40)
      }),
  },
  {
    id: 'chat-11',
    rule: 'No two calls of a message have the same id, and no two tool messages answer the same call.',
    source: 'https://github.com/agno-agi/agno/issues/5116',
    check: ({ body }) =>
      firstRefusal(messagesIn(body), (message, at) => {
        const calls = callsIn(message).map(({ id }) => asString(id))
        const twice = firstRepeated(calls) ?? (calls.length > 0 ? firstRepeated(answersAfter(body, at)) : undefined)
        if (twice === undefined) return null
        const wrong = `Duplicate value for 'tool_call_id' of '${twice}', in messages[${at}].`
        return { message: `Invalid parameter: ${wrong}`, param: `messages.[${at}].tool_call_id` }
      }),
  },
]

const tools: readonly DialectRule[] = [
  {
    id: 'chat-12',
    rule: 'A list of tools is not empty.',
    source: API,
    check: ({ body }) => (Array.isArray(body.tools) && body.tools.length === 0 ? emptyArrayRefusal('tools') : null),
  },
  {
    id: 'chat-13',
    rule: 'The name of a function is made of letters, digits, _ and -, at most 64 of them.',
    source: API,
    check: ({ body }) =>
      firstRefusal(functionsIn(body), ({ name }, at) =>
        badNameRefusal(`tools[${at}].function.name`, asString(name), 64),
      ),
  },
  {
    id: 'chat-14',
    rule: 'The schema of a strict function allows nothing else and requires everything.',
    source: STRICT,
    check: ({ body }) =>
      firstRefusal(functionsIn(body), ({ name, strict, parameters }, at) => {
        const why = strict === true ? whyNotStrict(parameters) : null
        if (why === null) return null
        const message = `Invalid schema for function '${asString(name)}': ${why}`
        return { message, param: `tools[${at}].function.parameters`, code: 'invalid_function_parameters' }
      }),
  },
  {
    id: 'chat-15',
    rule: 'tool_choice and parallel_tool_calls are only given with tools, and a tool that must be used is one of them.',
    source: API,
    check: ({ body }) => {
      const names = functionsIn(body).map(({ name }) => asString(name))
      const param = ['tool_choice', 'parallel_tool_calls'].find((field) => field in body)
      if (param !== undefined && names.length === 0) {
        const why = `'${param}' is only allowed when 'tools' are specified.`
        return { message: `Invalid value for '${param}': ${why}`, param }
      }
      const wanted = asString(fieldsOf(fieldsOf(body.tool_choice).function).name)
      if (wanted === '' || names.includes(wanted)) return null
      return { message: "Tool choice 'function' not found in 'tools' parameter.", param: 'tool_choice' }
    },
  },
]

const options: readonly DialectRule[] = [
  {
    id: 'chat-16',
    rule: 'stream_options are only given with stream.',
    source: API,
    check: ({ body }) => {
      if (body.stream === true || body.stream_options === undefined || body.stream_options === null) return null
      const message = "The 'stream_options' parameter is only allowed when 'stream' is enabled."
      return { message, param: 'stream_options' }
    },
  },
  {
    id: 'chat-17',
    rule: 'The output is bounded by max_tokens or by max_completion_tokens, and only by the latter for models that reason.',
    source: API,
    check: ({ body }) => {
      if (body.max_tokens === undefined || body.max_tokens === null) return null
      if (typeof body.max_completion_tokens === 'number') {
        const message = "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported."
        return { message, code: 'invalid_parameter_combination' }
      }
      if (!REASONING.test(asString(body.model))) return null
      const message =
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
      return { message, param: 'max_tokens', code: 'unsupported_parameter' }
    },
  },
  {
    id: 'chat-18',
    rule: 'A schema for the answer has a name, and a strict one allows nothing else and requires everything.',
    source: STRICT,
    check: ({ body }) => {
      const format = fieldsOf(body.response_format)
      if (format.type !== 'json_schema') return null
      const { name, strict, schema } = fieldsOf(format.json_schema)
      const named = badNameRefusal('response_format.json_schema.name', asString(name), 64)
      const why = strict === true ? whyNotStrict(schema) : null
      if (named !== null || why === null) return named
      return { message: `Invalid schema for response_format '${asString(name)}': ${why}`, param: 'response_format' }
    },
  },
  {
    id: 'chat-19',
    rule: 'An answer in JSON without a schema is asked for in words too.',
    source: STRICT,
    check: ({ body }) => {
      const asked = fieldsOf(body.response_format).type !== 'json_object'
      if (asked || /json/i.test(JSON.stringify(body.messages))) return null
      const message =
        "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'."
      return { message, param: 'messages' }
    },
  },
  {
    id: 'chat-20',
    rule: 'The parameters of a tool have no oneOf, anyOf, allOf, enum or not at their top.',
    source: 'https://github.com/nspady/google-calendar-mcp/issues/39',
    check: ({ body }) =>
      firstRefusal(functionsIn(body), ({ name, parameters }, at) =>
        badRootRefusal(`tools[${at}].function.parameters`, asString(name), parameters),
      ),
  },
]

export const chatRules: readonly DialectRule[] = [...conversation, ...calls, ...tools, ...options]

function messagesIn(body: JsonObject): readonly JsonObject[] {
  return asList(body.messages).map(fieldsOf)
}

function callsIn(message: JsonObject | undefined): readonly JsonObject[] {
  return asList(message?.tool_calls).map(fieldsOf)
}

function functionsIn(body: JsonObject): readonly JsonObject[] {
  return asList(body.tools).map((tool) => fieldsOf(fieldsOf(tool).function))
}

/** The call ids that the following tool messages answer. */
function answersAfter(body: JsonObject, at: number): readonly string[] {
  const rest = messagesIn(body).slice(at + 1)
  const end = rest.findIndex(({ role }) => role !== 'tool')
  return (end < 0 ? rest : rest.slice(0, end)).map(({ tool_call_id: id }) => asString(id))
}

/** The calls a tool message can answer: those of the last message before it that is not a tool message. */
function callsBefore(body: JsonObject, at: number): readonly string[] {
  const before = messagesIn(body).slice(0, at)
  return callsIn(before.findLast(({ role }) => role !== 'tool')).map(({ id }) => asString(id))
}

function checkCalls(
  body: JsonObject,
  look: (call: JsonObject, at: string) => ProviderRefusal | null,
): ProviderRefusal | null {
  return firstRefusal(messagesIn(body), (message, at) =>
    firstRefusal(callsIn(message), (call, place) => look(call, `messages[${at}].tool_calls[${place}]`)),
  )
}
