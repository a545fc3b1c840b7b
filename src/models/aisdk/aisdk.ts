// Any language model of the AI SDK as a Model. Optional: only types of the SDK are imported, and the caller owns the client, its
// retries and its addresses. Deadlines, budgets and the log stay with the harness.
import type { LanguageModelV3, LanguageModelV3StreamPart } from '@ai-sdk/provider'
import { Fault } from '../../kernel/failure.ts'
import type { CallContext, ModelFailure, Reply, Request } from '../../ports/model.ts'
import { brokenBy } from './failure.ts'
import { familyOf } from './marks.ts'
import { type AiSdkSettings, optionsFor } from './prompt.ts'
import { Listening } from './stream.ts'
import { failure } from '../http/failures.ts'
import { HOSTED_OPTIONS, OUTPUT_TOKENS, type Priced } from '../http/hosted.ts'
import { anything, optionsOf, record } from '../../options.ts'
import { unwrapped } from '../protocols/parallel.ts'
import { checkPrices, checkTokens, type Profile, profileOf } from '../price.ts'

export type { AiSdkSettings } from './prompt.ts'

const checkSettings = optionsOf<AiSdkSettings>('fromAiSdk', {
  outputTokensMax: anything,
  temperature: HOSTED_OPTIONS.temperature,
  providerOptions: record,
  prices: anything,
})

export function fromAiSdk(model: LanguageModelV3, settings: AiSdkSettings = {}): Priced {
  if ((model as Partial<LanguageModelV3>)?.specificationVersion !== 'v3') {
    throw new Fault(
      'invalid_config',
      'fromAiSdk takes a language model of the AI SDK, specification v3. Make one with a provider package of that version.',
    )
  }
  checkSettings(settings)
  checkPrices(settings.prices)
  checkTokens('outputTokensMax', settings.outputTokensMax)
  const name = `${model.provider}:${model.modelId}`
  let profile: Promise<Profile> | null = null
  const known = (): Promise<Profile> => {
    profile ??= profileOf(familyOf(model), model.modelId, settings.prices)
    return profile
  }
  return {
    name,
    able: { name, native: 'possible' },
    outputTokensMax: settings.outputTokensMax ?? OUTPUT_TOKENS,
    secrets: {},
    profile: known,
    call: async (request, context) => {
      const answer = await ask(model, settings, request, context)
      if (answer.type === 'failure') return answer
      const reply = unwrapped(answer, request.tools)
      const cost = answer.cost ?? (answer.usage === null ? undefined : (await known()).cost(answer.usage))
      return { ...reply, route: name, ...(cost === undefined ? {} : { cost }) }
    },
  }
}

async function ask(
  model: LanguageModelV3,
  settings: AiSdkSettings,
  request: Request,
  context: CallContext,
): Promise<Reply | ModelFailure> {
  const listening = new Listening(model, context.emit)
  const stop = new AbortController()
  const onAbort = (): void => stop.abort(context.signal.reason)
  context.signal.addEventListener('abort', onAbort, { once: true })
  try {
    if (context.signal.aborted) return failure('other', 'The call was stopped before it was made.')
    // Do not wait for a client that ignores the signal.
    await Promise.race([listen(model, settings, request, stop.signal, listening), aborted(stop.signal)])
    return listening.result()
  } catch (error) {
    if (context.signal.aborted) return listening.broken(failure('other', 'The call was stopped.'))
    return listening.broken(brokenBy(error))
  } finally {
    context.signal.removeEventListener('abort', onAbort)
    stop.abort(new Error('The call is over.'))
  }
}

async function listen(
  model: LanguageModelV3,
  settings: AiSdkSettings,
  request: Request,
  abortSignal: AbortSignal,
  listening: Listening,
): Promise<void> {
  const { stream } = await start(model, settings, request, abortSignal)
  const reader: ReadableStreamDefaultReader<LanguageModelV3StreamPart> = stream.getReader()
  try {
    for (let read = await reader.read(); !read.done && !abortSignal.aborted; read = await reader.read()) {
      listening.hear(read.value)
    }
  } finally {
    // After an early exit the rest is not wanted; cancelling a finished stream does nothing.
    reader.cancel().catch(() => {})
  }
}

/** A file the provider cannot take is sent as text, so that the session can go on. */
async function start(model: LanguageModelV3, settings: AiSdkSettings, request: Request, abortSignal: AbortSignal) {
  try {
    return await model.doStream({ ...optionsFor(model, settings, request, true), abortSignal })
  } catch (error) {
    const refused = error instanceof Error && error.name === 'AI_UnsupportedFunctionalityError'
    const files = request.messages.some(
      (message) => message.role === 'user' && message.parts.some((p) => p.type === 'data'),
    )
    if (!refused || !files) throw error
    return model.doStream({ ...optionsFor(model, settings, request, false), abortSignal })
  }
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    const fail = (): void => reject(signal.reason instanceof Error ? signal.reason : new Error('The call was stopped.'))
    signal.addEventListener('abort', fail, { once: true })
  })
}
