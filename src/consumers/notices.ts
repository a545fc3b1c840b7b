// Notices to somebody outside: to standard output, a command, or a web address. Each is a function that sends one notice, for
// `notify` of triggers and for your own code, and a consumer that sends it each settled run.
import { spawn } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { Fault } from '../kernel/failure.ts'
import {
  type Checks,
  functionCheck,
  listCheck,
  nonEmptyCheck,
  optionsChecker,
  requiredCheck,
  textCheck,
} from '../options.ts'
import type { Consumer } from '../runtime/hooks/consumers.ts'
import type { SettledRun } from '../runtime/hooks/settled-run.ts'
import { allowedEnvironment } from '../tools/shell/sandbox.ts'
import { clipText } from '../view/shown-text.ts'

type NoticeOptions = {
  /** The name of the consumer. Two notices of one harness need two names. */
  readonly name?: string
  /** Which runs are told. Default: all. Must be the same in every process. */
  readonly when?: (settled: SettledRun) => boolean
}
const NOTICE = { name: nonEmptyCheck, when: functionCheck }
const ALWAYS = (): boolean => true

/** Sends one notice, as JSON with its `key`. Called again with the same key, it is the same notice. Rejects if it was not taken. */
export type NoticeSender = (
  notice: object,
  context: { readonly key: string; readonly signal: AbortSignal },
) => Promise<void>

/** A notice as others read it, with the key that is the same in every try. */
const noticeText = (notice: object, key: string): string => JSON.stringify({ key, ...notice })

function noticeConsumer(send: NoticeSender, name: string, when: NoticeOptions['when'] = ALWAYS): Consumer {
  return { name, run: (settled, context) => (when(settled) ? send(settled, context) : undefined) }
}

/** Writes one JSON line for each notice to standard output. */
export function stdoutSender(): NoticeSender {
  return (notice, { key }) =>
    new Promise((resolve, reject) =>
      process.stdout.write(`${noticeText(notice, key)}\n`, (error) => (error ? reject(error) : resolve())),
    )
}

/** Options of `stdoutNotice`: which runs are printed. */
export type StdoutNoticeOptions = NoticeOptions
const checkStdout = optionsChecker<StdoutNoticeOptions>('stdoutNotice', NOTICE)

/** Writes one JSON line for each run to standard output. */
export function stdoutNotice(options: StdoutNoticeOptions = {}): Consumer {
  checkStdout(options)
  return noticeConsumer(stdoutSender(), options.name ?? 'stdout', options.when)
}

/** A program that is started for each notice, with its arguments, folder and variables. */
export type CommandSenderOptions = {
  /** The program and its arguments. No shell reads them. */
  readonly argv: readonly string[]
  /** The folder that the program runs in. Default: that of the process. */
  readonly cwd?: string
  /** Names of environment variables that the program gets beside the usual ones. */
  readonly env?: readonly string[]
}
/** Options of `commandNotice`: the program, and which runs it is told about. */
export type CommandNoticeOptions = NoticeOptions & CommandSenderOptions
const COMMAND: Checks<CommandSenderOptions> = {
  argv: requiredCheck(listCheck(textCheck), 'Name the program and its arguments.'),
  cwd: nonEmptyCheck,
  env: listCheck(nonEmptyCheck),
}
const checkCommandSender = optionsChecker<CommandSenderOptions>('commandSender', COMMAND)
const checkCommandNotice = optionsChecker<CommandNoticeOptions>('commandNotice', { ...NOTICE, ...COMMAND })
const STDERR_CHARS = 500
/** What a program said before it failed is read for so long after its end. */
const STDERR_MS = 500

/** Runs a program for each notice, which reads it as JSON on its standard input. Exit code 0: it is told. */
export function commandSender(options: CommandSenderOptions): NoticeSender {
  checkCommandSender(options)
  return commandSenderOf(options, 'commandSender')
}

/** Runs a program for each run, which reads the run as JSON on its standard input. Exit code 0: it is told. */
export function commandNotice(options: CommandNoticeOptions): Consumer {
  checkCommandNotice(options)
  return noticeConsumer(commandSenderOf(options, 'commandNotice'), options.name ?? 'command', options.when)
}

function commandSenderOf({ argv, cwd, env = [] }: CommandSenderOptions, of: string): NoticeSender {
  const [file = '', ...args] = argv
  if (file === '') throw new Fault('invalid_config', `The option "argv" of ${of} is empty: name a program.`)
  return (notice, { key, signal }) =>
    new Promise((resolve, reject) => {
      const child = spawn(file, args, {
        ...(cwd === undefined ? {} : { cwd }),
        env: { ...allowedEnvironment(process.env, env) },
        stdio: ['pipe', 'ignore', 'pipe'],
        signal,
        killSignal: 'SIGKILL',
      })
      let said = ''
      child.stderr.on('data', (chunk) => {
        said = (said + String(chunk)).slice(-STDERR_CHARS)
      })
      child.once('error', reject)
      // What it started may go on, and hold its standard error open: that is not waited for.
      child.once('exit', (code, by) => {
        if (code === 0) resolve()
        const fail = (): void =>
          reject(new Error(`${file} ended with ${code === null ? by : `exit code ${code}`}: ${said.trim()}`))
        const late = setTimeout(() => child.stderr.destroy(), code === 0 ? 0 : STDERR_MS)
        child.once('close', () => {
          clearTimeout(late)
          fail()
        })
      })
      // A program need not read what it is told.
      child.stdin.on('error', () => {})
      child.stdin.end(noticeText(notice, key))
    })
}

/** An address that gets each notice, and the secret that notices are signed with. */
export type WebhookSenderOptions = {
  /** The address that each notice is posted to. */
  readonly url: string
  /** The name of the environment variable with the secret that signs each request. */
  readonly secret: string
}
/** Options of `webhookNotice`: the address, and which runs it is told about. */
export type WebhookNoticeOptions = NoticeOptions & WebhookSenderOptions
const WEBHOOK: Checks<WebhookSenderOptions> = {
  url: requiredCheck(nonEmptyCheck),
  secret: requiredCheck(nonEmptyCheck, 'Name the environment variable with the secret.'),
}
const checkWebhookSender = optionsChecker<WebhookSenderOptions>('webhookSender', WEBHOOK)
const checkWebhookNotice = optionsChecker<WebhookNoticeOptions>('webhookNotice', { ...NOTICE, ...WEBHOOK })
const WEBHOOK_MS = 10_000
const ANSWER_CHARS = 200

/**
 * Posts each notice as JSON to this address. `terret-id` is the key, and `terret-signature` is `t=SECONDS,v1=HEX`: the
 * HMAC-SHA256 of `SECONDS.BODY`. An answer of 2xx within 10 seconds: it is told. Redirects are not followed.
 */
export function webhookSender(options: WebhookSenderOptions): NoticeSender {
  checkWebhookSender(options)
  return webhookSenderOf(options, 'webhookSender')
}

/** Posts each run as JSON to this address, signed as by `webhookSender`. */
export function webhookNotice(options: WebhookNoticeOptions): Consumer {
  checkWebhookNotice(options)
  return noticeConsumer(webhookSenderOf(options, 'webhookNotice'), options.name ?? 'webhook', options.when)
}

function webhookSenderOf({ url, secret }: WebhookSenderOptions, of: string): NoticeSender {
  if (!/^https?:$/.test(URL.canParse(url) ? new URL(url).protocol : ''))
    throw new Fault('invalid_config', `The option "url" of ${of} must be an address with http or https.`)
  readSecret(secret)
  return async (notice, { key, signal }) => {
    const body = noticeText(notice, key)
    const seconds = Math.floor(Date.now() / 1_000)
    const hex = createHmac('sha256', readSecret(secret)).update(`${seconds}.${body}`).digest('hex')
    const headers = {
      'content-type': 'application/json',
      'terret-id': key,
      'terret-signature': `t=${seconds},v1=${hex}`,
    }
    const late = AbortSignal.timeout(WEBHOOK_MS)
    const limits = AbortSignal.any([signal, late])
    const answer = await fetch(url, { method: 'POST', body, headers, redirect: 'manual', signal: limits })
    const text = answer.ok ? '' : clipText(await readBeginning(answer).catch(() => ''), ANSWER_CHARS)
    await answer.body?.cancel().catch(() => {})
    if (!answer.ok)
      throw new Error(`${new URL(url).host} answered with ${answer.status}${whyRefused(answer.status)}. ${text}`)
  }
}

/** Enough of an answer for a reason. The rest is not read, however long it is. */
async function readBeginning({ body }: Response): Promise<string> {
  let text = ''
  const decoder = new TextDecoder()
  for await (const bytes of (body ?? []) as AsyncIterable<Uint8Array>) {
    text += decoder.decode(bytes, { stream: true })
    if (text.length > ANSWER_CHARS) break
  }
  return text
}

function whyRefused(status: number): string {
  return status >= 300 && status < 400 ? ', a redirect, which is not followed' : ''
}

function readSecret(name: string): string {
  const value = process.env[name]
  if (value) return value
  throw new Fault('invalid_config', `The environment variable ${name}, which signs notices, is not set.`)
}
