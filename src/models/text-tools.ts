// A model without tool calls, used like one that has them: it writes its calls as text in one dialect. The dialect is
// said by the host and never guessed. The work is in protocols/dialects/ask-in-text.ts, which the first call loads.
import { oneOf, optionsChecker, requiredCheck } from '../options.ts'
import type { Model } from '../ports/model.ts'
import { isPriced, modelIdentity, outputTokensOf, type Priced } from './http/hosted-model.ts'
import type { TextAsker } from './protocols/dialects/ask-in-text.ts'
import type { TextDialect } from './protocols/dialects/readers.ts'
import { resolveModel } from './resolve-model.ts'

export type { TextDialect } from './protocols/dialects/readers.ts'

/**
 * `xml`: `<tool_call>{"name": …, "arguments": …}</tool_call>`, also with P-Format in the tag. `invoke`:
 * `<invoke name="…"><parameter name="…">`. `function`: `<function=…><parameter=…>`. `fenced`: JSON in a code fence
 * with the word `tool_call`.
 */
export type TextToolsOptions = {
  /** How the model writes a call in its text. */
  readonly dialect: TextDialect
}

const DIALECT_NAMES = { xml: true, invoke: true, function: true, fenced: true } as const
const checkOptions = optionsChecker<TextToolsOptions>('textTools', {
  dialect: requiredCheck(oneOf<TextDialect>(DIALECT_NAMES), 'Say in which form the model writes its calls.'),
})

/**
 * The calls become ordinary calls: they are admitted, asked about, run and recorded like those of any other model. A
 * call keeps the text that the model wrote.
 */
export function textTools(model: string | Priced, options: TextToolsOptions): Priced
export function textTools(model: Model, options: TextToolsOptions): Model
export function textTools(given: string | Model, options: TextToolsOptions): Model {
  checkOptions(options)
  const model = resolveModel(given)
  const { dialect } = options
  let asker: Promise<TextAsker> | null = null
  const call: Model['call'] = async (request, context) => {
    asker ??= import('./protocols/dialects/ask-in-text.ts').then(({ TextAsker }) => new TextAsker(model, dialect))
    return (await asker).call(request, context)
  }
  const routes = model.routes === undefined ? {} : { routes: model.routes }
  if (!isPriced(model)) return { name: model.name, ...routes, call }
  const { name, able, outputTokensMax, secrets } = model
  const wrapped: Priced = {
    name,
    ...routes,
    // An answer that must be JSON has no room for a call.
    able: { ...able, native: 'no' },
    outputTokensMax,
    secrets,
    identity: () => JSON.stringify(['textTools', dialect, modelIdentity(model)]),
    profile: () => model.profile(),
    askWindow: async (clock) => model.askWindow?.(clock),
    outputTokensWith: (settings) => outputTokensOf(model, settings),
    call,
  }
  return wrapped
}
