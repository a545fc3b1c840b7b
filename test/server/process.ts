// `terret serve` as a process of its own, on the stage of the command line: started, asked, stopped and killed.
import { onTestFinished } from 'vitest'
import type { Stage, Started } from '../cli/stage.ts'
import { type Answer, type Ask, requested } from './served.ts'

export type Serving = Started & {
  readonly url: string
  readonly token: string
  readonly port: number
  ask(method: string, path: string, ask?: Ask): Promise<Answer>
  json<T>(method: string, path: string, ask?: Ask): Promise<T>
}

export async function serving(stage: Stage, ...args: readonly string[]): Promise<Serving> {
  const started = stage.start(['serve', '--port', '0', '--json', ...args])
  onTestFinished(() => void started.child.kill('SIGKILL'))
  let out = ''
  started.child.stdout?.on('data', (text: string) => {
    out += text
  })
  await started.says('"token"')
  const { url, token } = JSON.parse(out) as { readonly url: string; readonly token: string }
  const port = Number(new URL(url).port)
  const ask: Serving['ask'] = (method, path, { headers = {}, body, token: other = token } = {}) => {
    const content = body === undefined ? undefined : JSON.stringify(body)
    const media = content === undefined ? {} : { 'content-type': 'application/json' }
    return requested(port, method, path, { authorization: `Bearer ${other ?? ''}`, ...media, ...headers }, content)
  }
  const json = async <T>(method: string, path: string, asked?: Ask): Promise<T> => {
    const { status, text } = await ask(method, path, asked)
    if (status >= 300) throw new Error(`${status} ${text}`)
    return JSON.parse(text) as T
  }
  return { ...started, url, token, port, ask, json }
}
