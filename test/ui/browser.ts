// A real browser without a window, for the tests of pages, and the example app as a process of its own.
import { spawn } from 'node:child_process'
import { resolve } from 'node:path'
import { type Browser, chromium } from 'playwright-core'
import { rolldown } from 'rolldown'
import { onTestFinished } from 'vitest'
import { chromiumPath } from './chromium.ts'

const root = resolve(import.meta.dirname, '../..')
/** Tests of pages need Chromium. The CI installs it; elsewhere its absence is a named skip. */
export const noChromium = chromiumPath === undefined
if (noChromium && process.env['TERRET_REQUIRE_CHROMIUM'])
  throw new Error('Chromium is missing, and its tests may not be skipped here')

export async function browser(): Promise<Browser> {
  const launched = await chromium.launch({ executablePath: chromiumPath ?? '', args: ['--no-sandbox'] })
  onTestFinished(() => launched.close())
  return launched
}

/** A page bundled with another version of the AI SDK: the package `react`, and the `ai` that it brings. */
export async function pageOf(file: string, react: string): Promise<string> {
  const modules = resolve(root, 'node_modules')
  const bundle = await rolldown({
    input: resolve(root, file),
    cwd: root,
    platform: 'browser',
    logLevel: 'silent',
    resolve: { alias: { '@ai-sdk/react': resolve(modules, react), ai: resolve(modules, react, 'node_modules/ai') } },
    transform: { define: { 'process.env.NODE_ENV': '"production"' } },
  })
  return (await bundle.generate({ format: 'esm', codeSplitting: false })).output[0].code
}

/** Where the example listens, once it does. */
export async function exampleAt(name: string): Promise<string> {
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
