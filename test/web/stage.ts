// The gallery, built and served as the inspector is: under its policy, by a server that does nothing else. And a browser that looks at it
// and writes down what goes wrong. No expectations here.
import { existsSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { extname, join } from 'node:path'
import type { Page } from 'playwright-core'
import { build } from 'vite'
import { onTestFinished } from 'vitest'
import { CSP } from '../../src/server/inspector-files.ts'
import { share } from '../runs.ts'
import { repository } from '../tidy/source.ts'
import { browser } from '../ui/browser.ts'

export const DIST = join(repository, 'dist/web')
export const BUILT = join(repository, '.build/gallery')
export const SHOTS = join(repository, '.build/shots')

const MEDIA: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.json': 'application/json',
}

let built: Promise<unknown> | null = null

/** Once for all tests of a process. */
export function gallery(): Promise<unknown> {
  built ??= build({
    configFile: join(repository, 'vite.config.ts'),
    root: join(repository, 'test/web/gallery'),
    logLevel: 'error',
    build: { outDir: BUILT, emptyOutDir: true },
  })
  return built
}

/** Serves a folder of built pages. There is nothing under `/v1`. */
async function served(folder: string): Promise<string> {
  const server = createServer((request, response) => {
    const path = new URL(request.url ?? '/', 'http://x').pathname
    const file = join(folder, extname(path) === '' ? 'index.html' : path)
    if (path.startsWith('/v1/') || !existsSync(file)) return void response.writeHead(404).end('{}')
    const type = MEDIA[extname(file)] ?? 'text/plain'
    response.writeHead(200, { 'content-type': type, 'content-security-policy': CSP }).end(readFileSync(file))
  })
  await new Promise<void>((up) => server.listen(0, '127.0.0.1', up))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

export async function galleryAt(): Promise<string> {
  await gallery()
  return served(BUILT)
}

export type Looked = { readonly page: Page; readonly wrong: string[] }
export type Look = { readonly width: number; readonly dark: boolean; readonly height?: number }

/** Both themes at both widths; as a share, two of the four that have both themes and both widths. */
export function looks(): readonly Look[] {
  const pairs = [false, true].map((dark) => [
    { width: 1280, dark },
    { width: 390, dark: !dark },
  ])
  return share(pairs, 2).flat()
}

/** `wrong` has every error, refused load, dialog and request to elsewhere. */
export async function looking({ width, dark, height = 860 }: Look): Promise<Looked> {
  const context = await (await browser()).newContext({
    viewport: { width, height },
    colorScheme: dark ? 'dark' : 'light',
    reducedMotion: 'reduce',
  })
  context.setDefaultTimeout(60_000)
  const page = await context.newPage()
  const wrong: string[] = []
  page.on('console', (message) => {
    if (message.type() === 'error') wrong.push(message.text())
  })
  page.on('pageerror', (error) => wrong.push(String(error)))
  page.on('dialog', (dialog) => {
    wrong.push(`dialog: ${dialog.message()}`)
    void dialog.dismiss()
  })
  page.on('request', (request) => {
    if (!request.url().startsWith('http://127.0.0.1')) wrong.push(`asked ${request.url()}`)
  })
  return { page, wrong }
}
