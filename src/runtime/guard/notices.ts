// Texts of the harness for a model: the rest of a limit, and that a run makes no progress. This file has the sentences
// only; guard.ts and progress.ts decide when they are sent. No text of a tool's result stands in what the model reads
// here: it would seem to be the harness's own.
import type { Allow } from '../../kernel/content.ts'
import type { Run } from '../../kernel/session.ts'
import { shortenText } from '../../view/shown-text.ts'

export type AnswerTraits = { readonly writers: ReadonlySet<string>; readonly finalResult: boolean }

const NOTHING: readonly string[] = []

/** Notices about limits before the next request, the model's before the tools'. For most requests there are none. */
export function limitNotices(run: Run, tokens: number, allow: Allow, traits: AnswerTraits): readonly string[] {
  const { limits } = run
  const requestsLeft = limits.modelRequests - run.requests
  const callsLeft = limits.toolCalls === null ? null : limits.toolCalls - run.toolCalls
  // More than four fifths, in whole numbers.
  const { tokens: tokensMax = null } = limits
  const tight = tokensMax !== null && tokens * 5 > tokensMax * 4
  if (requestsLeft > 2 && (callsLeft === null || callsLeft > 1) && !tight) return NOTHING
  const notices: string[] = []
  if (requestsLeft === 1) notices.push(lastRequestText(allow, traits.finalResult))
  else if (allow === 'writers') notices.push(lastWritesText(traits))
  if (callsLeft === 1) notices.push(lastCallText(traits.finalResult))
  else if (callsLeft === 0) notices.push(noCallText(limits.toolCalls === 0, traits.finalResult))
  if (tight) notices.push(`More than 80 % of the ${tokensMax} tokens of this run are used. Come to an end.`)
  return notices
}

function answerNowText(finalResult: boolean): string {
  return finalResult ? 'Call final_result now with what you have.' : 'Give your final answer now with what you have.'
}

function lastRequestText(allow: Allow, finalResult: boolean): string {
  const now = 'This is the last model request of this run.'
  if (allow !== 'none') return `${now} No result of a tool can be read after it. ${answerNowText(finalResult)}`
  const withdrawn = finalResult ? 'All tools but final_result are withdrawn.' : 'The tools are withdrawn.'
  return `${now} ${withdrawn} ${answerNowText(finalResult)}`
}

function lastWritesText({ writers, finalResult }: AnswerTraits): string {
  const names = [...writers].sort().join(', ')
  const then = finalResult ? 'call final_result' : 'answer'
  return `Two model requests are left in this run. All tools but these are withdrawn: ${names}. Write what must be written now; then ${then}.`
}

function lastCallText(finalResult: boolean): string {
  const then = finalResult ? 'Then call final_result, which does not count.' : 'Then answer.'
  return `One tool call is left in this run. Make no more than one, and do not fan out: a larger batch is not run at all. ${then}`
}

function noCallText(never: boolean, finalResult: boolean): string {
  const what = never ? 'No tool calls are available in this run.' : 'No tool calls are left in this run.'
  return `${what} ${finalResult ? 'Call final_result, which does not count.' : 'Answer without tools.'}`
}

/** A tool name that a model made up is shown as a name and nothing else. */
function quoteToolName(tool: string): string {
  return `"${tool.slice(0, 64).replace(/[^\w.-]/g, '_')}"`
}

const ERROR_CHARS_MAX = 600

/** The repeated thing: a call, failures of any calls, or successful turns. */
export type Repetition =
  | { readonly type: 'call'; readonly tool: string }
  | { readonly type: 'failures' | 'calls' | 'outputs' }

export function nudgeText(what: Repetition, count: number, since: number): string {
  return `[no progress since turn ${since}] ${repetitionText(what, count)} ${CHANGES[what.type]}`
}

const CHANGES = {
  call: 'Do not make it again as it is: change the arguments, use another tool, or say what cannot be done.',
  failures: 'Step back: look at what is there before you act, use another tool, or say what cannot be done.',
  calls: 'Their results are above: use them, do something else, or give your answer. Once more stops the run.',
  outputs: 'Looking in this way brings nothing new: look elsewhere, or give your answer. Once more stops the run.',
} as const

function repetitionText(what: Repetition, count: number): string {
  if (what.type === 'call')
    return `${quoteToolName(what.tool)} failed ${count} times with the same arguments and the same error.`
  if (what.type === 'failures') return `${count} tool calls in a row failed.`
  return what.type === 'calls'
    ? `The same calls with the same arguments were made in ${count} turns in a row.`
    : `${count} turns in a row brought the same output.`
}

/** For people, and for the parent of a child: the text has the root cause. */
export function haltText(what: Repetition, count: number, error: string | null): string {
  return error === null
    ? `Stopping: ${repetitionText(what, count)}`
    : `Stopping: ${repetitionText(what, count)} Last error: ${errorReasonText(error)}`
}

export function rejectedText(tool: string, error: string): string {
  return `Stopping: ${quoteToolName(tool)} was not allowed, and was called again with the same arguments. Reason: ${errorReasonText(error)}`
}

export function permanentText(tool: string, error: string): string {
  return `Stopping: ${quoteToolName(tool)} cannot work here, and trying again would not help. Reason: ${errorReasonText(error)}`
}

function errorReasonText(error: string): string {
  return shortenText(error, ERROR_CHARS_MAX) || 'none was given.'
}
