// Makes a Model of any language model of the AI SDK. Optional: only types of the SDK are imported, and the caller owns
// the client, its retries and its addresses. Budgets and the log stay with the harness.
import type { LanguageModelV3StreamPart } from '@ai-sdk/provider'
import { Fault } from '../../kernel/failure.ts'
import type { CallContext, ModelFailure, Reply, Request } from '../../ports/model.ts'
import { failureFromError } from './sdk-failure.ts'
import { providerFamily } from './sdk-metadata.ts'
import { toSpecV4, buildCallOptions, type SdkProviderTool } from './call-options.ts'
import type { AiSdkSettings, SdkOrigin } from './sdk-settings.ts'
import { SdkReplyReader } from './sdk-stream.ts'
import { failure } from '../http/failures.ts'
import { HOSTED_OPTIONS, OUTPUT_TOKENS, type Priced } from '../http/hosted-model.ts'
import { DEADLINES, DeadlineError, closeAfterEnd, DeadlineTimer } from '../http/deadlines.ts'
import { anyCheck, type Check, withoutUndefined, optionsChecker, objectCheck, tableCheck } from '../../options.ts'
import { isFile } from '../protocols/media.ts'
import { whyChoiceMissing } from '../protocols/check-settings.ts'
import { unwrapParallel } from '../protocols/parallel.ts'
import { checkPrices, checkTokens, type Profile, profileOf } from '../price.ts'

export type { AiSdkSettings } from './sdk-settings.ts'

/** Only the members that are used of a language model, so that the types of both majors of the SDK fit. */
export interface AiSdkModel extends SdkOrigin {
  /** The version of the SDK's specification that it follows. */
  readonly specificationVersion: 'v3' | 'v4'
  /** Answers one request as a stream, in the form of the SDK. */
  doStream(options: never): PromiseLike<SdkStream>
}

type SdkStream = { readonly stream: ReadableStream<unknown> }

const VERSIONS: readonly unknown[] = ['v3', 'v4']

const providerTool: Check = (value) =>
  typeof value === 'object' && value !== null && 'id' in value && /^[\w-]+\.\w/.test(String(value.id))
    ? null
    : 'must be a tool of a provider package, such as anthropic.tools.webSearch_20250305()'

/** Providers whose tools only their own models have. Others, such as gateways, pass tools on. */
const FAMILIES: ReadonlySet<string> = new Set(['anthropic', 'openai', 'google', 'xai', 'groq', 'mistral'])

/** A tool of another provider would be dropped by the package, or refused by the host. */
function checkToolFamily(model: AiSdkModel, { providerTools = {} }: AiSdkSettings): void {
  const family = providerFamily(model)
  for (const { id } of Object.values(providerTools) as SdkProviderTool[]) {
    const [of = ''] = id.split('.')
    if (of === family || !FAMILIES.has(of) || !FAMILIES.has(family)) continue
    throw new Fault(
      'invalid_config',
      `${model.provider}:${model.modelId} cannot run ${id}: take a tool of its own provider.`,
    )
  }
}

const checkSettings = optionsChecker<AiSdkSettings>('fromAiSdk', {
  outputTokensMax: anyCheck,
  temperature: HOSTED_OPTIONS.temperature,
  topP: HOSTED_OPTIONS.topP,
  seed: HOSTED_OPTIONS.seed,
  stop: HOSTED_OPTIONS.stop,
  toolChoice: HOSTED_OPTIONS.toolChoice,
  headers: HOSTED_OPTIONS.headers,
  providerOptions: objectCheck,
  providerTools: tableCheck(providerTool),
  prices: anyCheck,
  deadlines: HOSTED_OPTIONS.deadlines,
})

/** Settings of a run that the AI SDK has no field for in all its providers. */
const UNSET_BY_SDK = ['reasoning', 'parallelToolCalls'] as const

/** Makes a model of the AI SDK into one for a harness. Retries, deadlines and prices are those of Terret. */
export function fromAiSdk(model: AiSdkModel, settings: AiSdkSettings = {}): Priced {
  if (!VERSIONS.includes((model as Partial<AiSdkModel> | null)?.specificationVersion)) {
    throw new Fault(
      'invalid_config',
      'fromAiSdk takes a language model of the AI SDK, specification v3 or v4. Make one with a provider package of that version.',
    )
  }
  checkSettings(settings)
  checkToolFamily(model, settings)
  checkPrices(settings.prices)
  checkTokens('outputTokensMax', settings.outputTokensMax)
  const name = `${model.provider}:${model.modelId}`
  let profile: Promise<Profile> | null = null
  const known = (): Promise<Profile> => {
    profile ??= profileOf(providerFamily(model), model.modelId, settings.prices)
    return profile
  }
  return {
    name,
    able: { name, native: 'possible' },
    outputTokensMax: settings.outputTokensMax ?? OUTPUT_TOKENS,
    secrets: {},
    identity: () => JSON.stringify([name, settings]),
    profile: known,
    outputTokensWith: (own) => {
      const wrong = UNSET_BY_SDK.find((setting) => own[setting] !== undefined)
      if (wrong === undefined) return own.outputTokensMax ?? settings.outputTokensMax ?? OUTPUT_TOKENS
      const how = 'The AI SDK has no field for it: write it as `providerOptions` of fromAiSdk'
      throw new Fault('invalid_config', `${name} cannot take \`${wrong}\`: it is reached through the AI SDK. ${how}.`)
    },
    call: async (request, context) => {
      const all = request.settings === undefined ? settings : { ...settings, ...request.settings }
      const missing = whyChoiceMissing(request, all)
      if (missing !== null) return failure('bad_request', missing)
      const answer = await askSdkModel(model, all, request, context)
      if (answer.type === 'failure') return answer
      const reply = unwrapParallel(answer, request.tools)
      const cost = answer.cost ?? (answer.usage === null ? undefined : (await known()).cost(answer.usage))
      return { ...reply, route: name, ...(cost === undefined ? {} : { cost }) }
    },
  }
}

async function askSdkModel(
  model: AiSdkModel,
  settings: AiSdkSettings,
  request: Request,
  context: CallContext,
): Promise<Reply | ModelFailure> {
  const { clock, signal } = context
  const begun = clock.now()
  const listening = new SdkReplyReader(model, context.emit)
  const stop = new AbortController()
  const onAbort = (): void => stop.abort(signal.reason)
  signal.addEventListener('abort', onAbort, { once: true })
  const watch = new DeadlineTimer(clock, { ...DEADLINES, ...withoutUndefined(settings.deadlines ?? {}) }, (late) =>
    stop.abort(late),
  )
  try {
    if (signal.aborted) return failure('other', 'The call was stopped before it was made.')
    const heard = listenToStream(model, settings, request, {
      stop: stop.signal,
      listening,
      watch,
      traced: traceHeaders(context),
    })
    // Do not wait for a client that ignores the signal.
    await Promise.race([heard, listening.over, rejectOnAbort(stop.signal)])
    closeAfterEnd(heard, clock, stop)
    return listening.result()
  } catch (error) {
    stop.abort(new Error('The call is over.'))
    if (signal.aborted) return listening.broken(failure('other', 'The call was stopped.'))
    const reason = stop.signal.reason as unknown
    if (!(reason instanceof DeadlineError)) return listening.broken(failureFromError(error))
    return listening.broken(failure('timeout', `${reason.message} After ${clock.now() - begun} ms.`))
  } finally {
    watch.end()
    signal.removeEventListener('abort', onAbort)
  }
}

type ListenOptions = {
  readonly stop: AbortSignal
  readonly listening: SdkReplyReader
  readonly watch: DeadlineTimer
  readonly traced: Pick<SdkSendOptions, 'headers'>
}

async function listenToStream(
  model: AiSdkModel,
  settings: AiSdkSettings,
  request: Request,
  { stop, listening, watch, traced }: ListenOptions,
): Promise<void> {
  const { stream } = await startStream(model, settings, request, { ...traced, abortSignal: stop })
  watch.noteData(false)
  listening.begin()
  const reader = stream.getReader() as ReadableStreamDefaultReader<LanguageModelV3StreamPart>
  try {
    for (let read = await reader.read(); !read.done && !stop.aborted; read = await reader.read()) {
      watch.noteData(!SILENT.has(read.value.type))
      listening.hear(read.value)
    }
  } finally {
    // After an early exit the rest is discarded; cancelling a finished stream does nothing.
    reader.cancel().catch(() => {})
  }
}

type SdkSendOptions = { readonly abortSignal: AbortSignal; readonly headers?: { readonly traceparent: string } }

function traceHeaders({ traceparent }: CallContext): Pick<SdkSendOptions, 'headers'> {
  return traceparent === undefined ? {} : { headers: { traceparent } }
}

/** Parts that show only that the connection is alive, not the call. */
const SILENT: ReadonlySet<string> = new Set(['ping', 'stream-start', 'response-metadata', 'raw'])

/** A file the provider cannot take is sent as text, so that the session can go on. */
async function startStream(
  model: AiSdkModel,
  settings: AiSdkSettings,
  request: Request,
  sending: SdkSendOptions,
): Promise<SdkStream> {
  const send = (files: boolean): PromiseLike<SdkStream> => {
    const options = { ...buildCallOptions(model, settings, request, files), ...sending }
    if (settings.headers !== undefined) options.headers = { ...settings.headers, ...sending.headers }
    return model.doStream((model.specificationVersion === 'v4' ? toSpecV4(options) : options) as never)
  }
  try {
    return await send(true)
  } catch (error) {
    const refused = error instanceof Error && error.name === 'AI_UnsupportedFunctionalityError'
    const files = request.messages.some(({ parts }) => parts?.some(isFile))
    if (!refused || !files) throw error
    return send(false)
  }
}

function rejectOnAbort(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    const fail = (): void => reject(signal.reason instanceof Error ? signal.reason : new Error('The call was stopped.'))
    signal.addEventListener('abort', fail, { once: true })
  })
}
