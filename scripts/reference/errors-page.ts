// docs/reference/errors.md: every code with its cause and remedy. Text only; `npm run reference` writes it down.
import { EXIT_TEXT } from '../../src/cli/exit.ts'
import { classify, type FailureKind, type FaultCode, type Outcome } from '../../src/index.ts'
import { CODES } from '../../src/kernel/codes.ts'
import { FAILURE_TEXTS, FAULT_TEXTS, type ErrorText, PROVIDER_TEXT, WIRE_TEXTS } from './error-texts.ts'

type FailedReason = Extract<Outcome, { type: 'failed' }>['reason']

/** A reason that is missing here does not compile. */
const REASONS: Readonly<Record<FailedReason, true>> = {
  provider_error: true,
  refusal: true,
  empty_answer: true,
  output_validation_failed: true,
  unexpected_model_behavior: true,
  tool_retries_exceeded: true,
  tool_error: true,
  hook_error: true,
  planner_failed: true,
  prepare_failed: true,
  crashed_too_often: true,
}

export function errorsPage(): string {
  return `# Errors

Every code that an error can have, with its cause and what to do: faults of the library, refusals of a server, failures of calls and runs, exit codes.

- A **fault** is thrown: \`error instanceof Fault\`, with \`error.code\` and a sentence in \`error.message\`. \`error.url\` is the address of its section here. Programs may rely on the codes, and not on the sentences.
- A **failure** is data. The model reads the failure of a call and can do something about it. A run that failed has the reason in its result, which is thrown only if you ask for that with \`orThrow\`.
- Anything else that is thrown is a bug, of Terret or of your own code.

## Faults

${sections(Object.keys(FAULT_TEXTS).map((code) => faultSection(code as FaultCode)))}

## Refusals of a server

A server answers a fault with the code above and the status that stands there. These codes only a server has:

${sections(Object.entries(WIRE_TEXTS).map(([code, text]) => section(code, `HTTP ${text.status}`, text)))}

## Failures of calls

The \`failure.kind\` of a call's result. No kind ends a run by itself.

| kind | means |
|---|---|
${(Object.keys(FAILURE_TEXTS) as FailureKind[]).map((kind) => `| \`${kind}\` | ${FAILURE_TEXTS[kind]} |`).join('\n')}

## Failed runs

The \`outcome.reason\` of a run whose outcome is \`failed\`. Its \`failure.message\` says more.

| reason | cause | what to do |
|---|---|---|
${(Object.keys(REASONS) as FailedReason[]).map(reasonRow).join('\n')}

## Exit codes

The command line ends with one of these.

| code | means |
|---|---|
${Object.entries(EXIT_TEXT)
  .map(([code, text]) => `| ${code} | ${text} |`)
  .join('\n')}
`
}

function sections(texts: readonly string[]): string {
  return texts.join('\n\n')
}

function faultSection(code: FaultCode): string {
  const { status, chatStatus, exit } = CODES[code]
  const chat = chatStatus === undefined ? '' : `, ${chatStatus} of a chat handler`
  return section(code, `HTTP ${status}${chat} · exit code ${exit}`, FAULT_TEXTS[code])
}

function section(code: string, answers: string, { cause, remedy }: ErrorText): string {
  return `### ${code}\n\n${cause}\n\n**What to do:** ${remedy}\n\n${answers}`
}

function reasonRow(reason: FailedReason): string {
  if (reason === 'provider_error') return `| \`${reason}\` | ${PROVIDER_TEXT.cause} | ${PROVIDER_TEXT.remedy} |`
  const { cause, nextAction } = classify({ type: 'failed', reason, failure: { kind: 'Failed', message: '' } })
  return `| \`${reason}\` | ${cause} | ${nextAction} |`
}
