// What the harness says to a model in its own words: what is left of a limit, and that a run gets nowhere. Sentences only;
// when they are said is guard.ts and progress.ts. No word of a tool's result stands in what a model is told here: it would
// read as the harness's own.
import type { Allow } from '../../kernel/content.ts'
import type { Run } from '../../kernel/session.ts'
import { shortened } from '../../view/text.ts'

export type Answering = { readonly writers: ReadonlySet<string>; readonly finalResult: boolean }

const NOTHING: readonly string[] = []

/** What must be said of the limits before the next request, the model's before the tools'. Most requests: nothing. */
export function limitNotices(run: Run, tokens: number, allow: Allow, traits: Answering): readonly string[] {
  const { limits } = run
  const requestsLeft = limits.modelRequests - run.requests
  const callsLeft = limits.toolCalls === null ? null : limits.toolCalls - run.toolCalls
  // Over four fifths, in whole numbers.
  const { tokens: tokensMax = null } = limits
  const tight = tokensMax !== null && tokens * 5 > tokensMax * 4
  if (requestsLeft > 2 && (callsLeft === null || callsLeft > 1) && !tight) return NOTHING
  const notices: string[] = []
  if (requestsLeft === 1) notices.push(lastRequest(allow, traits.finalResult))
  else if (allow === 'writers') notices.push(lastWrites(traits))
  if (callsLeft === 1) notices.push(lastCall(traits.finalResult))
  else if (callsLeft === 0) notices.push(noCall(limits.toolCalls === 0, traits.finalResult))
  if (tight) notices.push(`More than 80 % of the ${tokensMax} tokens of this run are used. Come to an end.`)
  return notices
}

function answerNow(finalResult: boolean): string {
  return finalResult ? 'Call final_result now with what you have.' : 'Give your final answer now with what you have.'
}

function lastRequest(allow: Allow, finalResult: boolean): string {
  const now = 'This is the last model request of this run.'
  if (allow !== 'none') return `${now} No result of a tool can be read after it. ${answerNow(finalResult)}`
  const withdrawn = finalResult ? 'All tools but final_result are withdrawn.' : 'The tools are withdrawn.'
  return `${now} ${withdrawn} ${answerNow(finalResult)}`
}

function lastWrites({ writers, finalResult }: Answering): string {
  const names = [...writers].sort().join(', ')
  const then = finalResult ? 'call final_result' : 'answer'
  return `Two model requests are left in this run. All tools but these are withdrawn: ${names}. Write what must be written now; then ${then}.`
}

function lastCall(finalResult: boolean): string {
  const then = finalResult ? 'Then call final_result, which does not count.' : 'Then answer.'
  return `One tool call is left in this run. Make no more than one, and do not fan out: a larger batch is not run at all. ${then}`
}

function noCall(never: boolean, finalResult: boolean): string {
  const what = never ? 'No tool calls are available in this run.' : 'No tool calls are left in this run.'
  return `${what} ${finalResult ? 'Call final_result, which does not count.' : 'Answer without tools.'}`
}

/** A name that a model made up is shown as a name and nothing else. */
function named(tool: string): string {
  return `"${tool.slice(0, 64).replace(/[^\w.-]/g, '_')}"`
}

const ERROR_CHARS_MAX = 600

/** What repeats: a call, failures of any calls, or successful turns. */
export type Repeated =
  | { readonly type: 'call'; readonly tool: string }
  | { readonly type: 'failures' | 'calls' | 'outputs' }

export function nudgeText(what: Repeated, count: number, since: number): string {
  return `[no progress since turn ${since}] ${repeats(what, count)} ${CHANGES[what.type]}`
}

const CHANGES = {
  call: 'Do not make it again as it is: change the arguments, use another tool, or say what cannot be done.',
  failures: 'Step back: look at what is there before you act, use another tool, or say what cannot be done.',
  calls: 'Their results are above: use them, do something else, or give your answer. Once more stops the run.',
  outputs: 'Looking in this way brings nothing new: look elsewhere, or give your answer. Once more stops the run.',
} as const

function repeats(what: Repeated, count: number): string {
  if (what.type === 'call')
    return `${named(what.tool)} failed ${count} times with the same arguments and the same error.`
  if (what.type === 'failures') return `${count} tool calls in a row failed.`
  return what.type === 'calls'
    ? `The same calls with the same arguments were made in ${count} turns in a row.`
    : `${count} turns in a row brought the same output.`
}

/** For people, and for the parent of a child: the root cause stands in it. */
export function haltText(what: Repeated, count: number, error: string | null): string {
  return error === null
    ? `Stopping: ${repeats(what, count)}`
    : `Stopping: ${repeats(what, count)} Last error: ${reasonOf(error)}`
}

export function rejectedText(tool: string, error: string): string {
  return `Stopping: ${named(tool)} was not allowed, and was called again with the same arguments. Reason: ${reasonOf(error)}`
}

export function permanentText(tool: string, error: string): string {
  return `Stopping: ${named(tool)} cannot work here, and trying again would not help. Reason: ${reasonOf(error)}`
}

function reasonOf(error: string): string {
  return shortened(error, ERROR_CHARS_MAX) || 'none was given.'
}
