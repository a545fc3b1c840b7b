// The published rules of OpenAI Responses, as data. Stored and signed items are compared with what this server sent.
import type { Issued } from './issued.ts'
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
import { type JsonObject, asList, asString } from '../view/untrusted-json.ts'

const API = 'https://platform.openai.com/docs/api-reference/responses/create'
const STRICT = 'https://developers.openai.com/api/docs/guides/structured-outputs'

/** Fields of Chat Completions and their new names. */
const MOVED: Readonly<Record<string, string>> = {
  messages: 'input',
  max_tokens: 'max_output_tokens',
  max_completion_tokens: 'max_output_tokens',
  response_format: 'text.format',
  reasoning_effort: 'reasoning.effort',
}

const INCLUDES: readonly string[] = [
  'file_search_call.results',
  'web_search_call.results',
  'web_search_call.action.sources',
  'message.input_image.image_url',
  'computer_call_output.output.image_url',
  'code_interpreter_call.outputs',
  'reasoning.encrypted_content',
  'message.output_text.logprobs',
]

const input: readonly DialectRule[] = [
  {
    id: 'responses-1',
    rule: 'The parameters of Chat Completions that have moved are not given in their old place.',
    source: 'https://platform.openai.com/docs/guides/migrate-to-responses',
    check: ({ body }) => {
      const param = Object.keys(MOVED).find((name) => name in body)
      if (param === undefined) return null
      const moved = `In the Responses API, this parameter has moved to '${MOVED[param]}'.`
      return { message: `Unsupported parameter: '${param}'. ${moved}`, param, code: 'unsupported_parameter' }
    },
  },
  {
    id: 'responses-2',
    rule: 'There is input.',
    source: API,
    check: ({ body }) => {
      if (Array.isArray(body.input)) return body.input.length > 0 ? null : emptyArrayRefusal('input')
      if (asString(body.input) !== '') return null
      const param = 'input'
      return { message: `Missing required parameter: '${param}'.`, param, code: 'missing_required_parameter' }
    },
  },
  {
    id: 'responses-3',
    rule: 'What the assistant said is output_text, and what others said is input_text.',
    source: API,
    check: ({ body }) =>
      firstRefusal(itemsIn(body), ({ role, content }, at) =>
        firstRefusal(asList(content), (part, place) => {
          const type = asString(fieldsOf(part).type)
          const wrong = role === 'assistant' ? type.startsWith('input_') : type === 'output_text'
          if (!wrong) return null
          const may =
            role === 'assistant' ? "'output_text' and 'refusal'" : "'input_text', 'input_image', and 'input_file'"
          const param = `input[${at}].content[${place}]`
          return { message: `Invalid value: '${type}'. Supported values are: ${may}.`, param, code: 'invalid_value' }
        }),
      ),
  },
  {
    id: 'responses-4',
    rule: 'No item is given twice.',
    source: 'https://github.com/vercel/ai/issues/7883',
    check: ({ body }) => {
      const ids = itemsIn(body).map(({ id }) => asString(id))
      const twice = firstRepeated(ids.filter((id) => id !== ''))
      if (twice === undefined) return null
      const message = `Duplicate item found with id ${twice}. Remove duplicate items from your input and try again.`
      return { message, param: 'input' }
    },
  },
]

const calls: readonly DialectRule[] = [
  // This rule comes first: a lost chain must be reported as such, not as an unmatched call.
  {
    id: 'responses-5',
    rule: 'The response that this one follows was stored.',
    source: 'https://github.com/smg-project/smg/pull/916',
    check: ({ body, issued }) => {
      const id = body.previous_response_id
      if (id === undefined || id === null || issued.responses.get(asString(id))?.stored) return null
      const message = `Previous response with id '${asString(id)}' not found.`
      return { message, param: 'previous_response_id', code: 'previous_response_not_found' }
    },
  },
  {
    id: 'responses-6',
    rule: 'The output of a function answers a call in the input or in the response that it follows.',
    source: 'https://github.com/microsoft/vscode/issues/320060',
    check: ({ body, issued }) => {
      const chained = issued.responses.get(asString(body.previous_response_id))?.calls ?? []
      const items = resolveItems(body, issued)
      return firstRefusal(items, ({ type, call_id: id }, at) => {
        const known = [...chained, ...callIds(items.slice(0, at))]
        if (type !== 'function_call_output' || known.includes(asString(id))) return null
        return { message: `No tool call found for function call output with call_id ${asString(id)}.`, param: 'input' }
      })
    },
  },
  {
    id: 'responses-7',
    rule: 'Every call, also one of the response that this one follows, has an output.',
    source: 'https://github.com/openai/openai-agents-python/issues/673',
    check: ({ body, issued }) => {
      const chained = issued.responses.get(asString(body.previous_response_id))?.calls ?? []
      const outputs = itemsIn(body).filter(({ type }) => type === 'function_call_output')
      const answered = outputs.map(({ call_id: id }) => asString(id))
      const missing = [...chained, ...callIds(resolveItems(body, issued))].find((id) => !answered.includes(id))
      return missing === undefined
        ? null
        : { message: `No tool output found for function call ${missing}.`, param: 'input' }
    },
  },
  {
    id: 'responses-8',
    rule: 'The call_id of a call or an output has 1 to 64 characters.',
    source: 'https://github.com/openai/openai-openapi/blob/main/openapi.yaml',
    check: ({ body }) =>
      firstRefusal(itemsIn(body), ({ type, call_id: given }, at) => {
        const param = `input[${at}].call_id`
        if (type !== 'function_call' && type !== 'function_call_output') return null
        const message = `Invalid '${param}': empty string. Expected a string with minimum length 1, but got an empty string instead.`
        return asString(given) === ''
          ? { message, param, code: 'empty_string' }
          : tooLongRefusal(param, asString(given), 64)
      }),
  },
  {
    id: 'responses-9',
    rule: 'The arguments of a call are a string.',
    source: API,
    check: ({ body }) =>
      firstRefusal(itemsIn(body), ({ type, arguments: given }, at) => {
        const param = `input[${at}].arguments`
        if (type !== 'function_call' || typeof given === 'string') return null
        const message = `Invalid type for '${param}': expected a string, but got an object instead.`
        return { message, param, code: 'invalid_type' }
      }),
  },
]

const memory: readonly DialectRule[] = [
  {
    id: 'responses-10',
    rule: 'An item that is only named, or reasoning without its encrypted content, was stored.',
    source: 'https://github.com/vercel/ai/issues/7543',
    check: ({ body, issued }) =>
      firstRefusal(itemsIn(body), ({ type, id, encrypted_content: encrypted }) => {
        const named = type === 'item_reference' || (type === 'reasoning' && asString(encrypted) === '')
        if (!named || issued.items.get(asString(id))?.stored) return null
        const why = 'Items are not persisted when `store` is set to false.'
        const how = 'Try again with `store` set to true, or remove this item from your input.'
        return { status: 404, message: `Item with id '${asString(id)}' not found. ${why} ${how}`, param: 'input' }
      }),
  },
  {
    id: 'responses-11',
    rule: 'Encrypted reasoning comes back as it was given, under the id that it had.',
    source: 'https://github.com/openai/codex/issues/8119',
    check: ({ body, issued }) =>
      firstRefusal(itemsIn(body), ({ type, id, encrypted_content: given }) => {
        if (type !== 'reasoning' || asString(given) === '') return null
        const encrypted = asString(given)
        if (issued.items.get(asString(id))?.encrypted === encrypted) return null
        const moved = [...issued.items.values()].some((item) => item.encrypted === encrypted)
        const why = moved
          ? 'Encrypted content item_id did not match the target item id.'
          : 'Encrypted content could not be decrypted or parsed.'
        const message = `The encrypted content for item ${asString(id)} could not be verified. Reason: ${why}`
        return { message, code: 'invalid_encrypted_content' }
      }),
  },
  {
    id: 'responses-12',
    rule: 'Reasoning is followed by the item that it led to.',
    source: 'https://github.com/openai/openai-node/issues/1567',
    check: ({ body, issued }) => {
      const items = resolveItems(body, issued)
      return firstRefusal(items, ({ type, id }, at) => {
        const wanted = issued.items.get(asString(id))?.before
        const next = items[at + 1]
        const fits = next !== undefined && isModelItem(next) && (!wanted || matchesItem(next, wanted))
        if (type !== 'reasoning' || fits) return null
        const message = `Item '${asString(id)}' of type 'reasoning' was provided without its required following item.`
        return { message, param: 'input' }
      })
    },
  },
  {
    id: 'responses-13',
    rule: 'An item that came with reasoning keeps it, unless it comes back without its id.',
    source: 'https://github.com/continuedev/continue/issues/11994',
    check: ({ body, issued }) => {
      const ids = itemsIn(body).map((item) => asString(item.id))
      return firstRefusal(itemsIn(body), ({ id, type }) => {
        const after = issued.items.get(asString(id))?.after ?? null
        if (after === null || ids.includes(after)) return null
        const wrong = `Item '${asString(id)}' of type '${asString(type)}' was provided without its required 'reasoning' item`
        return { message: `${wrong}: '${after}'.`, param: 'input' }
      })
    },
  },
]

const options: readonly DialectRule[] = [
  {
    id: 'responses-14',
    rule: 'The name of a function stands in the tool itself and is made of letters, digits, _ and -, at most 128 of them.',
    source: 'https://github.com/openai/openai-openapi/blob/main/openapi.yaml',
    check: ({ body }) =>
      firstRefusal(toolsIn(body), ({ name }, at) => badNameRefusal(`tools[${at}].name`, asString(name), 128)),
  },
  {
    id: 'responses-15',
    rule: 'The schema of a strict function allows nothing else and requires everything.',
    source: STRICT,
    check: ({ body }) =>
      firstRefusal(toolsIn(body), ({ name, strict, parameters }, at) => {
        const why = strict === true ? whyNotStrict(parameters) : null
        if (why === null) return null
        const message = `Invalid schema for function '${asString(name)}': ${why}`
        return { message, param: `tools[${at}].parameters`, code: 'invalid_function_parameters' }
      }),
  },
  {
    id: 'responses-16',
    rule: 'A tool that must be used is one of the tools given.',
    source: API,
    check: ({ body }) => {
      const { type, name } = fieldsOf(body.tool_choice)
      if (type !== 'function' || toolsIn(body).some((tool) => tool.name === name)) return null
      return { message: "Tool choice 'function' not found in 'tools' parameter.", param: 'tool_choice' }
    },
  },
  {
    id: 'responses-17',
    rule: 'A schema for the answer has a name, and a strict one allows nothing else and requires everything.',
    source: STRICT,
    check: ({ body }) => {
      const { type, name, strict, schema } = fieldsOf(fieldsOf(body.text).format)
      if (type !== 'json_schema') return null
      const named = badNameRefusal('text.format.name', asString(name), 64)
      const why = strict === true ? whyNotStrict(schema) : null
      if (named !== null || why === null) return named
      const message = `Invalid schema for response_format '${asString(name)}': ${why}`
      return { message, param: 'text.format.schema', code: 'invalid_json_schema' }
    },
  },
  {
    id: 'responses-18',
    rule: 'An answer in JSON without a schema is asked for in words too.',
    source: STRICT,
    check: ({ body }) => {
      const plain = fieldsOf(fieldsOf(body.text).format).type !== 'json_object'
      if (plain || /json/i.test(JSON.stringify(body.input))) return null
      const message =
        "Response input messages must contain the word 'json' in some form to use 'text.format' of type 'json_object'."
      return { message, param: 'input' }
    },
  },
  {
    id: 'responses-19',
    rule: 'What is to be included is something that there is.',
    source: API,
    check: ({ body }) =>
      firstRefusal(asList(body.include), (name, at) => {
        if (INCLUDES.includes(asString(name))) return null
        const message = `Invalid value: '${asString(name)}'. Supported values are: ${INCLUDES.map((each) => `'${each}'`).join(', ')}.`
        return { message, param: `include[${at}]`, code: 'invalid_value' }
      }),
  },
  {
    id: 'responses-20',
    rule: 'max_output_tokens is at least 16.',
    source: 'https://github.com/openai/openai-openapi/blob/main/openapi.yaml',
    check: ({ body }) => {
      const most = body.max_output_tokens
      if (typeof most !== 'number' || most >= 16) return null
      const message = `Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got ${most} instead.`
      return { message, param: 'max_output_tokens', code: 'integer_below_min_value' }
    },
  },
  {
    id: 'responses-21',
    rule: 'The parameters of a tool have no oneOf, anyOf, allOf, enum or not at their top.',
    source: 'https://github.com/langchain-ai/langchainjs/issues/9804',
    check: ({ body }) =>
      firstRefusal(toolsIn(body), ({ name, parameters }, at) =>
        badRootRefusal(`tools[${at}].parameters`, asString(name), parameters),
      ),
  },
  {
    id: 'responses-22',
    rule: 'The output of a call is a text, or a list of texts, images and files as the input has them.',
    source: API,
    check: ({ body }) =>
      firstRefusal(itemsIn(body), ({ type, output }, at) => {
        const parts = type === 'function_call_output' ? asList(output).map(fieldsOf) : []
        const odd = parts.findIndex((part) => !SHOWN.includes(asString(part.type)))
        if (odd < 0) return null
        const param = `input[${at}].output[${odd}].type`
        const message = `Invalid value: '${asString(parts[odd]?.type)}'. Supported values are: 'input_text', 'input_image', and 'input_file'.`
        return { message, param, code: 'invalid_value' }
      }),
  },
]

const SHOWN = ['input_text', 'input_image', 'input_file']

export const responsesRules: readonly DialectRule[] = [...input, ...calls, ...memory, ...options]

function itemsIn(body: JsonObject): readonly JsonObject[] {
  return asList(body.input).map(fieldsOf)
}

/** Resolves item references. */
function resolveItems(body: JsonObject, { items }: Issued): readonly JsonObject[] {
  return itemsIn(body).map((item) => {
    const named = item.type === 'item_reference' ? items.get(asString(item.id)) : undefined
    if (named === undefined) return item
    const { id, type, call } = named
    return { id, type, call_id: call, ...(type === 'message' ? { role: 'assistant' } : {}) }
  })
}

function toolsIn(body: JsonObject): readonly JsonObject[] {
  return asList(body.tools)
    .map(fieldsOf)
    .filter(({ type }) => type === 'function')
}

function callIds(items: readonly JsonObject[]): readonly string[] {
  return items.filter(({ type }) => type === 'function_call').map(({ call_id: id }) => asString(id))
}

/** An item written by the model. */
function isModelItem({ type, role }: JsonObject): boolean {
  return type === undefined || type === 'message' ? role === 'assistant' : type !== 'function_call_output'
}

/** An item without an id is matched by its type alone. */
function matchesItem(item: JsonObject, wanted: { readonly id: string; readonly type: string }): boolean {
  return (asString(item.type) || 'message') === wanted.type && (item.id === undefined || item.id === wanted.id)
}
