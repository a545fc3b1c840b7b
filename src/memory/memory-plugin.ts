// Memory as one plugin: its hooks, and extraction and episodes as consumers of settled runs, so that a process that dies
// first leaves them to the next one.
import { hash } from 'node:crypto'
import { resolve } from 'node:path'
import { type Consumer, bindConsumer } from '../runtime/hooks/consumers.ts'
import { workloadOfHint } from '../models/router.ts'
import { countCheck, optionsCheck, optionsChecker } from '../options.ts'
import { modelCheck } from '../sessions/agent.ts'
import type { Plugin } from '../sessions/plugins.ts'
import type { ExtractorHost, ExtractOptions } from './extractor.ts'
import type { Memory } from './memory.ts'
import { memoryHooks, type MemoryHooksOptions } from './memory-hooks.ts'
import { writeRuntimeFiles } from './runtime-files.ts'

/** Options of `memoryPlugin`: what is recalled, kept and extracted. */
export type MemoryPluginOptions = MemoryHooksOptions & {
  /**
   * After enough new tokens, calls and runs of a session, a model is asked for what later sessions should know. This
   * costs money. `true`: after 4,000 tokens, 8 calls and 4 runs, by the session's own model.
   */
  readonly extract?: ExtractOptions | boolean
}

const extractCheck = optionsCheck<ExtractOptions>({
  model: modelCheck,
  tokens: countCheck(),
  calls: countCheck(),
  runs: countCheck(1),
})
const checkExtract = optionsChecker<Pick<MemoryPluginOptions, 'extract'>>('memoryPlugin', {
  extract: (value, name, of) => (typeof value === 'boolean' ? null : extractCheck(value, name, of)),
})

/** The hooks of memory; with `extract` also extraction, and with `episodes` the consumer that writes them. */
export function memoryPlugin(memory: Memory, options: MemoryPluginOptions = {}): Plugin {
  const { extract = false, ...hooks } = options
  checkExtract({ extract })
  const consumers = [
    ...(extract === false ? [] : [extraction(memory, extract === true ? {} : extract, hooks)]),
    ...(hooks.episodes === true ? [episodeIndex(memory)] : []),
  ]
  return { name: 'memory', hooks: memoryHooks(memory, hooks), consumers }
}

/** The model has the time of the session's agent for its answer; this only ends what hangs. */
const TIMEOUT_MS = 30 * 60_000

/** Each file has a consumer of its own, so that nothing is learned into the memory of another folder. */
function consumerName(work: 'extraction' | 'episodes', { file }: Memory): string {
  return `memory-${work}-${hash('sha256', resolve(file)).slice(0, 16)}`
}

/** Writes one episode for each settled run of a root. A run that is told again is written once, under its key. */
function episodeIndex(memory: Memory): Consumer {
  return {
    name: consumerName('episodes', memory),
    run: (settled, { key }) => memory.useIndex((index) => index.keepEpisode(key, settled)),
  }
}

/** Its code is loaded with the first run. */
function extraction(memory: Memory, extract: ExtractOptions, { dir, onError = warn }: MemoryHooksOptions): Consumer {
  const { model } = extract
  const written = async (session: string): Promise<void> => {
    await memory.learn(session)
    if (dir !== undefined) await writeRuntimeFiles(memory.store, session, dir)
  }
  return bindConsumer(
    { name: consumerName('extraction', memory), timeoutMs: TIMEOUT_MS },
    {
      // Sound: only a harness binds, and it gives this host.
      check: (host) => {
        if (typeof model === 'string' && workloadOfHint(model) === null) (host as ExtractorHost).services.model(model)
      },
      make: (host) => {
        const extracting = { memory, extract, report: onError, written }
        const loading = import('./extractor.ts').then(
          ({ Extractor }) => new Extractor(host as ExtractorHost, extracting),
        )
        return async ({ session }, { signal }) => (await loading).extract(session, signal)
      },
    },
  )
}

function warn(error: unknown): void {
  process.emitWarning(`memory: ${error instanceof Error ? error.message : String(error)}`, 'TerretWarning')
}
