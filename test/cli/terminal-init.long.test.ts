// `terret init` at a real terminal, with a local server of models; `terret "TEXT"` and `terret` there.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { stageOfEach } from './scripted.ts'
import { noTmux, openScreen, PROMPT } from './terminal.ts'

const { provider, scriptedBy, stage } = stageOfEach()
const config = (): string => join(stage.config, 'config.json')
const written = (): unknown => JSON.parse(readFileSync(config(), 'utf8'))

/** A server as Ollama's: the list of models is its own, and what is asked goes to the scripted provider. */
async function ollama(ids: readonly string[]): Promise<string> {
  const server = createServer((request, response) => {
    void (async () => {
      if (request.method === 'GET') {
        response.setHeader('content-type', 'application/json')
        response.end(JSON.stringify({ data: ids.map((id) => ({ id })) }))
        return
      }
      const chunks: Buffer[] = []
      for await (const chunk of request) chunks.push(chunk as Buffer)
      const body = Buffer.concat(chunks)
      if (body.includes('"broken"')) {
        response.statusCode = 400
        response.end('{"error":{"message":"no such \\u001b[2Jmodel"}}')
        return
      }
      const path = (request.url ?? '').replace(/^\/v1/, '')
      const answer = await fetch(`${provider.chaos?.url ?? ''}${path}`, {
        method: 'POST',
        body,
        headers: { 'content-type': 'application/json' },
      })
      response.writeHead(answer.status, { 'content-type': answer.headers.get('content-type') ?? '' })
      response.end(Buffer.from(await answer.arrayBuffer()))
    })().catch(() => response.destroy())
  })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return `127.0.0.1:${(server.address() as AddressInfo).port}`
}

describe.skipIf(noTmux)('set-up at a terminal', { timeout: 120_000 }, () => {
  it('B-CLI-420: init lists what is found, tries the chosen model, says what it cost, and writes it', async () => {
    await scriptedBy(['ok'])
    rmSync(config())
    const seen = openScreen(stage, { OLLAMA_HOST: await ollama(['alpha', 'broken', 'evil\u001b]0;title\u0007name']) })
    seen.enter('clear; terret init')
    const list = await seen.until(/Which model\?[\s\S]*offline:any/)
    expect(list).toContain('There is no key of a host in your environment.')
    expect(list).toMatch(/ollama:alpha .*no charge/)
    expect(list).not.toContain('\u001b')
    seen.type('broken')
    await seen.until(/broken[\s\S]*ollama:broken/)
    seen.keys('Enter')
    const failed = await seen.until(/It does not work:[\s\S]*Which model\?[\s\S]*ollama:broken/)
    expect(failed).toContain('Choose another one, or leave with Esc.')
    expect(existsSync(config())).toBe(false)
    seen.type('alph')
    await seen.until(/alph[\s\S]*ollama:alpha/)
    seen.keys('Enter')
    await seen.until(/It answered in \d+\.\d s: \d+ tokens?, no charge\.[\s\S]*Wrote [\s\S]*\n\$$/)
    expect(written()).toMatchObject({ model: 'ollama:alpha', mode: 'ask', bash: true, endpoints: { ollama: {} } })
    seen.enter('clear; terret init; echo code $?')
    expect(await seen.until(/code \d/)).toMatch(/is there already[\s\S]*code 0/)
  })

  it('B-CLI-420: Esc writes nothing; without a server and a key the offline model is left', async () => {
    rmSync(config(), { force: true })
    const seen = openScreen(stage, { OLLAMA_HOST: '127.0.0.1:9' })
    seen.enter('clear; terret init; echo code $?')
    await seen.until(/None was found\. Set a key[\s\S]*Which model\?[\s\S]*offline:any/)
    seen.keys('Escape')
    expect(await seen.until(/code \d/)).toMatch(/Nothing was written\.\ncode 5/)
    expect(existsSync(config())).toBe(false)
    seen.enter('clear; terret init')
    await seen.until(/Which model\?[\s\S]*offline:any/)
    seen.keys('Enter')
    await seen.until(/Wrote [\s\S]*\n\$$/)
    expect(written()).toEqual({ model: 'offline:any', mode: 'ask', bash: true })
  })

  it('B-CLI-400: terret opens the chat, with a message where the first word has a space, and a typo is no message', async () => {
    await scriptedBy(['First answer.', 'Second answer.'])
    const seen = openScreen(stage)
    seen.enter('clear; terret "Fix the test." --quiet; terret --trust "Fix the test."')
    await seen.until(/has no flag --quiet[\s\S]*› Fix the test\.[\s\S]*First answer\.[\s\S]*\n›$/)
    seen.keys('C-d')
    await seen.until(/Go on with: terret interactive \w{8}\n\$$/)
    seen.enter('clear; terret -c "And now?"')
    await seen.until(/First answer\.[\s\S]*› And now\?[\s\S]*Second answer\.[\s\S]*\n›$/)
    seen.keys('C-d')
    await seen.until(/Second answer\.[\s\S]*Go on with: terret interactive[^\n]*\n\$$/)
    seen.enter('clear; terret intractive; echo code $?')
    expect(await seen.until(/code \d/)).toMatch(/Did you mean `terret interactive`\?\ncode 2/)
    seen.enter('clear; terret')
    await seen.until(PROMPT)
    expect(provider.chaos?.requests).toHaveLength(2)
  })
})
