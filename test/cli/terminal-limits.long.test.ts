// A chat at a limit of a run: it asks whether it goes on, and the answer is in the log.
import { describe, expect, it } from 'vitest'
import { stageOfEach } from './scripted.ts'
import { endpoint } from './stage.ts'
import { noTmux, openScreen, PROMPT, type Screen } from './terminal.ts'

const { provider, scriptedBy, stage } = stageOfEach()

async function chat(args = ''): Promise<Screen> {
  const opened = openScreen(stage)
  opened.enter(`clear; terret interactive --trust ${args}`.trimEnd())
  await opened.until(args === '' ? PROMPT : '›')
  return opened
}
const list = { calls: [{ tool: 'list', args: { path: '.' } }] }
const QUESTION = /2 requests were made\. Go on for another 2 requests\? y · n ›$/

describe.skipIf(noTmux)('a limit in a chat', { timeout: 120_000 }, () => {
  it('B-CLI-370: it asks to go on for as much again; yes is a message in the log, no stays, and other words are said', async () => {
    await scriptedBy([list, list, list, 'Half done.', list, list, 'Other words.'], { limits: { modelRequests: 2 } })
    const seen = await chat()
    seen.enter('Go.')
    await seen.until(QUESTION)
    seen.enter('y')
    await seen.until(/Half done\.[\s\S]*tokens\n\n.*\n›$/)
    const { out } = await stage.terret('history', 'latest', '--event', 'user.message')
    expect(out).toContain('Go on, for another 2 requests.')
    seen.enter('More.')
    await seen.until(QUESTION)
    seen.enter('n')
    await seen.until(/It stays here[\s\S]*\n›$/)
    seen.enter('go on')
    await seen.until(/Other words\.[\s\S]*tokens\n\n.*\n›$/)
  })

  it('B-CLI-370: what is neither yes nor no is the next message', async () => {
    await scriptedBy([list, list, 'As you wish.'], { limits: { modelRequests: 2 } })
    const seen = await chat()
    seen.enter('Go.')
    await seen.until(QUESTION)
    seen.enter('Stop listing.')
    await seen.until(/As you wish\.[\s\S]*tokens\n\n.*\n›$/)
    expect(JSON.stringify(provider.chaos?.requests.at(-1)?.body)).toContain('Stop listing.')
  })

  it('B-CLI-371: a chat that was left at the question asks it again, and not once it was answered', async () => {
    await scriptedBy([list, list, 'Done.'], { limits: { modelRequests: 2 } })
    const seen = await chat()
    seen.enter('Go.')
    await seen.until(QUESTION)
    await seen.close()
    const again = await chat('latest')
    await again.until(QUESTION)
    again.enter('y')
    await again.until(/Done\.[\s\S]*tokens\n\n.*\n›$/)
    await again.close()
    const last = await chat('latest')
    await last.until(/goes on, after[\s\S]*Done\.\n\n.*\n›$/)
  })

  it('B-CLI-370: calls are asked about too', async () => {
    const two = { calls: [...list.calls, ...list.calls] }
    await scriptedBy([two, list, 'Done.'], { limits: { toolCalls: 2 } })
    const seen = await chat()
    seen.enter('Go.')
    await seen.until(/2 calls were made\. Go on for another 2 calls\? y · n ›$/)
    seen.enter('y')
    await seen.until(/Done\.[\s\S]*tokens\n\n.*\n›$/)
  })

  it('B-CLI-372: money is asked about with the amount, and what is no amount is asked for again', async () => {
    const { url } = await scriptedBy(['Done.'])
    const endpoints = { openai: { baseUrl: `${url}/v1`, protocol: 'chat' } }
    stage.configure({ ...endpoint(url), model: 'openai:gpt-5.1', endpoints, budget: { sessionUsd: 0.01 } })
    stage.write('config/terret/.env', 'OPENAI_API_KEY=sk-0123456789abcdef\n')
    const seen = await chat()
    seen.enter('Think.')
    await seen.until(/does not cover the next call[\s\S]*Go on for another \$[\d.]+\? y · n · or an amount ›$/)
    seen.enter('much')
    await seen.until(/an amount in dollars, such as 0\.50[\s\S]*or an amount ›$/)
    seen.enter('y')
    await seen.until(/Done\.[\s\S]*tokens[^\n]*\n\n.*\n›$/)
    const { out } = await stage.terret('history', 'latest')
    expect(out).toMatch(/raised the budget by \$/)
  })
})
