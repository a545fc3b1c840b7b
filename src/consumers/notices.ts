// Consumers that tell somebody outside about settled runs: standard output, a command, or a web address.
import { spawn } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { Fault } from '../kernel/failure.ts'
import { functionCheck, listCheck, nonEmptyCheck, optionsChecker, requiredCheck, textCheck } from '../options.ts'
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

/** A settled run as others read it: the run, with the key that is the same in every try. */
const noticeText = (settled: SettledRun, key: string): string => JSON.stringify({ key, ...settled })

export type StdoutNoticeOptions = NoticeOptions
const checkStdout = optionsChecker<StdoutNoticeOptions>('stdoutNotice', NOTICE)

/** Writes one JSON line for each run to standard output. */
export function stdoutNotice(options: StdoutNoticeOptions = {}): Consumer {
  checkStdout(options)
  const { name = 'stdout', when = ALWAYS } = options
  const write = (text: string): Promise<void> =>
    new Promise((resolve, reject) => process.stdout.write(text, (error) => (error ? reject(error) : resolve())))
  return { name, run: (settled, { key }) => (when(settled) ? write(`${noticeText(settled, key)}\n`) : undefined) }
}

export type CommandNoticeOptions = NoticeOptions & {
  /** The program and its arguments. No shell reads them. */
  readonly argv: readonly string[]
  readonly cwd?: string
  /** Names of environment variables that the program gets beside the usual ones. */
  readonly env?: readonly string[]
}
const checkCommand = optionsChecker<CommandNoticeOptions>('commandNotice', {
  ...NOTICE,
  argv: requiredCheck(listCheck(textCheck), 'Name the program and its arguments.'),
  cwd: nonEmptyCheck,
  env: listCheck(nonEmptyCheck),
})
const STDERR_CHARS = 500

/** Runs a program for each run, which reads the run as JSON on its standard input. Exit code 0: it is told. */
export function commandNotice(options: CommandNoticeOptions): Consumer {
  checkCommand(options)
  const { name = 'command', when = ALWAYS, argv, cwd, env = [] } = options
  const [file = '', ...args] = argv
  if (file === '') throw new Fault('invalid_config', 'The option "argv" of commandNotice is empty: name a program.')
  const tell = (text: string, signal: AbortSignal): Promise<void> =>
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
      child.once('close', (code, by) => {
        if (code === 0) resolve()
        else reject(new Error(`${file} ended with ${code === null ? by : `exit code ${code}`}: ${said.trim()}`))
      })
      // A program need not read what it is told.
      child.stdin.on('error', () => {})
      child.stdin.end(text)
    })
  return {
    name,
    run: (settled, { key, signal }) => (when(settled) ? tell(noticeText(settled, key), signal) : undefined),
  }
}

export type WebhookNoticeOptions = NoticeOptions & {
  readonly url: string
  /** The name of the environment variable with the secret that signs each request. */
  readonly secret: string
}
const checkWebhook = optionsChecker<WebhookNoticeOptions>('webhookNotice', {
  ...NOTICE,
  url: requiredCheck(nonEmptyCheck),
  secret: requiredCheck(nonEmptyCheck, 'Name the environment variable with the secret.'),
})
const WEBHOOK_MS = 10_000
const ANSWER_CHARS = 200

/**
 * Posts each run as JSON to this address. `terret-id` is the key, and `terret-signature` is `t=SECONDS,v1=HEX`: the
 * HMAC-SHA256 of `SECONDS.BODY`. An answer of 2xx within 10 seconds: it is told. Redirects are not followed.
 */
export function webhookNotice(options: WebhookNoticeOptions): Consumer {
  checkWebhook(options)
  const { name = 'webhook', when = ALWAYS, url, secret } = options
  if (!/^https?:$/.test(URL.canParse(url) ? new URL(url).protocol : ''))
    throw new Fault('invalid_config', 'The option "url" of webhookNotice must be an address with http or https.')
  readSecret(secret)
  const tell = async (body: string, key: string, signal: AbortSignal): Promise<void> => {
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
    const text = answer.ok ? '' : clipText(await answer.text().catch(() => ''), ANSWER_CHARS)
    await answer.body?.cancel().catch(() => {})
    if (!answer.ok)
      throw new Error(`${new URL(url).host} answered with ${answer.status}${whyRefused(answer.status)}. ${text}`)
  }
  return {
    name,
    run: (settled, { key, signal }) => (when(settled) ? tell(noticeText(settled, key), key, signal) : undefined),
  }
}

function whyRefused(status: number): string {
  return status >= 300 && status < 400 ? ', a redirect, which is not followed' : ''
}

function readSecret(name: string): string {
  const value = process.env[name]
  if (value) return value
  throw new Fault('invalid_config', `The environment variable ${name}, which signs notices, is not set.`)
}
