// A real browser without a window, for the tests of pages, and the example app as a process of its own.
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { type Browser, chromium } from 'playwright-core'
import { onTestFinished } from 'vitest'

const places = ['/usr/bin/chromium-headless-shell', '/usr/bin/chromium', '/usr/bin/google-chrome']
const executablePath = [process.env['TERRET_CHROMIUM'] ?? '', ...places].find((path) => path !== '' && existsSync(path))

/** Tests of pages need Chromium. The CI installs it; elsewhere its absence is a named skip. */
export const noChromium = executablePath === undefined
if (noChromium && process.env['TERRET_REQUIRE_CHROMIUM'])
  throw new Error('Chromium is missing, and its tests may not be skipped here')

export async function browser(): Promise<Browser> {
  const launched = await chromium.launch({ executablePath: executablePath ?? '', args: ['--no-sandbox'] })
  onTestFinished(() => launched.close())
  return launched
}

/** Where the example listens, once it does. */
export async function exampleAt(name: string): Promise<string> {
  const root = resolve(import.meta.dirname, '../..')
  const child = spawn(process.execPath, [`.build/examples/${name}/server.js`], {
    cwd: root,
    env: { ...process.env, PORT: '0' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  onTestFinished(() => void child.kill())
  return new Promise((up, failed) => {
    let text = ''
    child.on('exit', (code) => failed(new Error(`The example ended with ${code}: ${text}`)))
    child.stdout.on('data', (chunk: Buffer) => {
      text += chunk.toString()
      const url = /http:\/\/\S+/.exec(text)?.[0]
      if (url !== undefined) up(url)
    })
  })
}
