// One call of a model without tool calls: its request as text, its reply with the calls that are read out of the text,
// and its stream without them. text-tools.ts loads this with the first call.
import type { CallContext, Model, ModelFailure, Reply, Request } from '../../../ports/model.ts'
import type { Part } from '../../../kernel/content.ts'
import { textOf } from '../../../view/shown-text.ts'
import { ForwardedContext } from '../../forwarded-context.ts'
import { looksLikeCall } from '../leaked-calls.ts'
import { listTools, TextRequests } from './as-text.ts'
import { CallHider } from './hide-calls.ts'
import { type CallsOfText, readCalls } from './read-calls.ts'
import { type TextDialect, DIALECTS, type DialectRules } from './readers.ts'

export class TextAsker {
  readonly #model: Model
  readonly #rules: DialectRules
  readonly #requests: TextRequests

  constructor(model: Model, dialect: TextDialect) {
    this.#model = model
    this.#rules = DIALECTS[dialect]
    this.#requests = new TextRequests(this.#rules)
  }

  async call(request: Request, context: CallContext): Promise<Reply | ModelFailure> {
    const tools = listTools(request)
    const hider = new CallHider(this.#rules)
    let part = 0
    const emit: CallContext['emit'] = (delta) => {
      if (delta.kind !== 'text') return context.emit(delta)
      part = delta.part
      const text = hider.push(delta.text)
      if (text !== '') context.emit({ ...delta, text })
    }
    const said = await this.#model.call(this.#requests.of(request, tools), new ForwardedContext(context, emit))
    if (said.type !== 'reply')
      return said.partial === undefined ? said : { ...said, partial: this.#prose(said.partial) }
    const text = textOf(said.parts)
    const read = readCalls(text, this.#rules, tools)
    const names = tools.map(({ name }) => name)
    const rest = read === null && looksLikeCall(text, names) ? '' : hider.end(read?.text ?? text)
    if (rest !== '') context.emit({ kind: 'text', part, text: rest })
    return read === null ? said : replyWith(said, read, request.seq)
  }

  /** The text of an answer that broke off, as its stream showed it. */
  #prose(text: string): string {
    return new CallHider(this.#rules).push(text)
  }
}

function replyWith(said: Reply, { calls, text }: CallsOfText, seq: number): Reply {
  const first = said.parts.findIndex(({ type }) => type === 'text')
  const prose: readonly Part[] = text === '' ? [] : [{ type: 'text', text }]
  const parts = said.parts.flatMap((part, i) => (i === first ? prose : part.type === 'text' ? [] : [part]))
  const read = calls.map(({ tool, args, raw }, i) => ({ id: `call_${seq}_${i}`, tool, args, text: raw }))
  return { ...said, parts, calls: read, finish: said.finish === 'stop' ? 'calls' : said.finish }
}
