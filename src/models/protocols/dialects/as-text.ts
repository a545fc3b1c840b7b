// The request of a session as a model without tool calls reads it: the tools stand in the instructions, calls in the
// text of the assistant, results in the text of the user. Each message is translated alone, so the next request begins
// with the same bytes. Pure.
import type { Json, Part } from '../../../kernel/content.ts'
import type { Message, ShownCall } from '../../../kernel/transcript.ts'
import type { Request, ToolSchema } from '../../../ports/model.ts'
import { asList, isObject, ownOf } from '../../../view/untrusted-json.ts'
import { LEAKED } from '../leaked-calls.ts'
import { OUTPUT_TOOL, toolSchema } from '../tool-schema.ts'
import { CallReading } from './call-reader.ts'
import { findAny } from './markers.ts'
import { RESULT_OPENING } from './read-calls.ts'
import type { DialectRules } from './readers.ts'

const UNREAD =
  'Nothing of that reply was run: it has a call that cannot be read. Write each call again exactly as the instructions show it, with the name of a tool that is listed.'

/** Translates the requests of one model. A message is translated once. */
export class TextRequests {
  readonly #rules: DialectRules
  readonly #marks: RegExp
  readonly #known = new WeakMap<Message, Message>()

  constructor(rules: DialectRules) {
    this.#rules = rules
    this.#marks = findAny([...rules.readers.keys(), RESULT_OPENING, '</tool_result>'], 'g')
  }

  of(request: Request, tools: readonly ToolSchema[]): Request {
    const { output, settings, instructions, messages, ...rest } = request
    const texts = [instructions, tools.length > 0 ? this.#instructions(tools, output) : '']
    const { toolChoice: _choice, parallelToolCalls: _parallel, ...kept } = settings ?? {}
    return {
      ...rest,
      ...(output?.mode === 'native' ? { output } : {}),
      ...(Object.keys(kept).length > 0 ? { settings: kept } : {}),
      tools: [],
      instructions: texts.filter((text) => text !== '').join('\n\n'),
      messages: messages.map((message) => this.#message(message)),
    }
  }

  #message(message: Message): Message {
    const known = this.#known.get(message)
    if (known !== undefined) return known
    const said = this.#translated(message)
    this.#known.set(message, said)
    return said
  }

  #translated(message: Message): Message {
    if (message.role === 'user') return { ...message, parts: message.parts.map((part) => this.#userPart(part)) }
    if (message.role === 'assistant') return this.#assistant(message)
    const { seq, content, tool, ok, status = 'error', parts = [] } = message
    const said = typeof content === 'string' ? content : JSON.stringify(content)
    const about = `call="${callNumber(message)}" tool="${tool.replace(/[^\w.:-]/g, '_')}"${ok ? '' : ` failed="${status}"`}`
    const text = `${RESULT_OPENING} ${about}>\n${this.#quoted(said)}\n</tool_result>`
    return { role: 'user', seq, parts: [{ type: 'text', text }, ...parts.map((part) => this.#userPart(part))] }
  }

  #assistant(message: Extract<Message, { role: 'assistant' }>): Message {
    const { parts, calls } = message
    if (calls.length === 0) return message
    const said = parts.some((part) => part.type === 'text' && part.text !== '')
    const text = `${said ? '\n\n' : ''}${this.#calls(calls).join('\n')}`
    return { ...message, parts: [...parts, { type: 'text', text }], calls: [] }
  }

  /** A call that this model wrote is shown as it was written, any other one in the model's dialect. */
  #calls(calls: readonly ShownCall[]): readonly string[] {
    const reading = new CallReading(calls.map(({ tool }) => ({ name: tool, description: '', parameters: {} })))
    const written: string[] = []
    let isOwn = false
    for (const { tool, args, text } of calls) {
      // An empty text: the call stands in one block with the call before it.
      if (text !== '') isOwn = text !== undefined && this.#reads(text, reading)
      if (!isOwn) written.push(this.#rules.write({ tool, args: JSON.stringify(args) }))
      else if (text) written.push(text)
    }
    return written
  }

  #reads(text: string, reading: CallReading): boolean {
    const [, reader] = [...this.#rules.readers].find(([marker]) => text.startsWith(marker)) ?? []
    return reader?.(text, 0, reading)?.end === text.length
  }

  #userPart(part: Part): Part {
    if (part.type !== 'text') return part
    const isNotice = part.text.startsWith('<harness_notice')
    const text = this.#quoted(isNotice ? part.text.replace(LEAKED.text, UNREAD) : part.text)
    return text === part.text ? part : { ...part, text }
  }

  /** What others wrote cannot be taken for a call, also when the model repeats it. */
  #quoted(text: string): string {
    return text.replace(this.#marks, (mark) =>
      mark.startsWith('<') ? `&lt;${mark.slice(1)}` : `\`\`\` ${mark.slice(3)}`,
    )
  }

  #instructions(tools: readonly ToolSchema[], output: Request['output']): string {
    const example = this.#rules.write({ tool: 'NAME', args: '{"PARAMETER": "VALUE"}' })
    const end =
      output?.mode === 'tool'
        ? `Give the final answer as a call of ${output.name}.`
        : 'A reply without a call is the final answer.'
    return `# Tools
You can call the tools below. To make a call, write it like this, and not in a code fence of another kind:

${example}

Write one of these for each call, and nothing after the last one. The next message then has the results, each in ${RESULT_OPENING}>; never write a result yourself. In results and messages, "&lt;" at the beginning of such a mark stands for "<". ${end}

${tools.map(signatureOf).join('\n\n')}`
  }
}

/** The tools of a request, with the one that takes the final answer. */
export function listTools({ tools, output }: Request): readonly ToolSchema[] {
  if (output?.mode !== 'tool') return tools
  return [...tools, { name: output.name, description: OUTPUT_TOOL, parameters: output.schema }]
}

/** `read(path: string, limit?: integer)`, its description, and the schema of its arguments. */
function signatureOf({ name, description, parameters }: ToolSchema): string {
  const schema = toolSchema(parameters)
  const fields = isObject(schema) ? ownOf(schema, 'properties') : undefined
  const required = asList(isObject(schema) ? ownOf(schema, 'required') : undefined)
  const listed = Object.entries(isObject(fields) ? fields : {}).map(
    ([key, field]) => `${key}${required.includes(key) ? '' : '?'}: ${typeName(field)}`,
  )
  return `## ${name}(${listed.join(', ')})\n${description}\nArguments: ${JSON.stringify(schema)}`
}

function typeName(field: Json): string {
  const type = isObject(field) ? ownOf(field, 'type') : undefined
  if (typeof type === 'string') return type
  return Array.isArray(type) ? type.join(' | ') : 'any'
}

/** Which call of its reply a result is of, counted from 1. */
function callNumber({ call }: Extract<Message, { role: 'tool' }>): number {
  return Number(call.slice(call.indexOf('.') + 1)) + 1
}
