// Memory for a harness, as hooks: recall when a run begins, learn and write the runtime files when a session rests. None of them
// fails a run, and none delays one for longer than it may.
import type { Hook } from '../riders/hooks/hooks.ts'
import { bindable } from '../riders/hooks/bound.ts'
import { citedText } from './cite.ts'
import { runtimeFilesHook } from './files.ts'
import { callable, type Checks, count, filled, optionsOf, within } from '../options.ts'
import { modelCheck } from '../sessions/agent.ts'
import type { ExtractOptions } from './extract.ts'
import { type Memory, RECALL, type RecallOptions } from './memory.ts'

/** What the agent learned that is about the message, for the model to read before it, with citations. */
export function recallHook(memory: Pick<Memory, 'recall'>, options: RecallHookOptions = {}): Hook {
  checkRecall(options)
  const { onError = warn, ...recall } = options
  return {
    type: 'user_prompt_submit',
    run: async ({ agent, prompt }) => {
      try {
        const found = await memory.recall(agent, prompt, recall)
        return found.length > 0 ? { context: citedText(found) } : undefined
      } catch (error) {
        onError(error)
        return undefined
      }
    },
  }
}

export type RecallHookOptions = RecallOptions & {
  /** Told why nothing was recalled. Default: a warning of the process. */
  readonly onError?: (error: unknown) => void
}

const RECALL_HOOK: Checks<RecallHookOptions> = { ...RECALL, onError: callable }
const checkRecall = optionsOf<RecallHookOptions>('recallHook', RECALL_HOOK)
const extractCheck = within<ExtractOptions>({ model: modelCheck, tokens: count(), calls: count(), runs: count(1) })
const checkHooks = optionsOf<MemoryHooksOptions>('memoryHooks', {
  ...RECALL_HOOK,
  dir: filled,
  extract: (value, name, of) => (typeof value === 'boolean' ? null : extractCheck(value, name, of)),
})

/** Takes in what a session taught, each time it rests. */
export function learnHook(memory: Pick<Memory, 'learn'>): Hook {
  return { type: 'session_rest', run: ({ session }) => memory.learn(session) }
}

/** Asks a model after a run what later sessions should know, each time enough has happened. Its code is loaded with the first run. */
function extractHook(memory: Memory, extract: ExtractOptions, report: (error: unknown) => void): Hook {
  return bindable('post_run', async (host) => {
    const { Extractor } = await import('./extract.ts')
    return new Extractor(host, { memory, extract, report })
  })
}

/** All of it; the runtime files only with `dir`, and extraction only with `extract`. */
export function memoryHooks(memory: Memory, options: MemoryHooksOptions = {}): readonly Hook[] {
  checkHooks(options)
  const { dir, extract = false, ...recall } = options
  const files = dir === undefined ? [] : [runtimeFilesHook({ store: memory.store, dir })]
  const { onError = warn } = recall
  const extracts = extract === false ? [] : [extractHook(memory, extract === true ? {} : extract, onError)]
  return [recallHook(memory, recall), learnHook(memory), ...files, ...extracts]
}

export type MemoryHooksOptions = RecallHookOptions & {
  /** Where the sessions' folders with their runtime files are. */
  readonly dir?: string
  /**
   * After enough new tokens, calls and runs of a session, a model is asked for what later sessions should know. It costs money. `true`:
   * after 4,000 tokens, 8 calls and 4 runs, by the session's own model.
   */
  readonly extract?: ExtractOptions | boolean
}

function warn(error: unknown): void {
  process.emitWarning(`memory: ${error instanceof Error ? error.message : String(error)}`, 'TerretWarning')
}
