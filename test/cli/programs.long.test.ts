// A program with a tool of its own is killed in the middle of a run, on the store of the command line. Whatever the command line does then,
// it does not drive that session; the program finishes it when it is started again. Real processes.
import { execFileSync, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { EventsAnswer, SessionAnswer, SessionPage, WireReceipt } from '../../src/server/wire.ts'
import { serving } from '../server/process.ts'
import { until } from '../until.ts'
import { stageOfEach } from './scripted.ts'

const { scriptedBy, stage } = stageOfEach()
const CHILD = fileURLToPath(new URL('../../.build/test/cli/child-billing.js', import.meta.url))
const ID = 'billing-session'

const place = () => ({ file: join(stage.home, 'terret.db'), journal: join(stage.folder, 'journal') })

/** The program, killed while its tool runs. */
async function killed(): Promise<void> {
  const { file, journal } = place()
  const child = spawn(process.execPath, [CHILD, file, stage.folder, journal, 'hang'], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  await until(() => expect(readFileSync(journal, 'utf8')).toBe('hang A-7\n'))
  const gone = new Promise((resolve) => child.once('exit', resolve))
  child.kill('SIGKILL')
  await gone
}

function restarted(): unknown {
  const { file, journal } = place()
  return JSON.parse(execFileSync(process.execPath, [CHILD, file, stage.folder, journal, 'work'], { encoding: 'utf8' }))
}

describe('a session of another program', () => {
  it('B-DRIVES-9: is shown, sent to and decided by `terret serve`, which leaves it to its program', async () => {
    const provider = await scriptedBy([{ text: 'I am another agent.' }])
    await stage.terret('list')
    await killed()
    const server = await serving(stage)
    await until(async () => expect((await server.json<{ readonly due: number }>('GET', '/v1/health')).due).toBe(1))
    // Longer than its lease, and than the pause between two looks.
    await new Promise((resolve) => setTimeout(resolve, 4_000))
    const { card } = await server.json<SessionAnswer>('GET', `/v1/sessions/${ID}`)
    expect(card).toMatchObject({
      program: 'unnamed',
      elsewhere: expect.stringContaining('which has no name') as string,
    })
    const { sessions } = await server.json<SessionPage>('GET', '/v1/sessions')
    expect(sessions[0]?.elsewhere).toBe(card.elsewhere)
    expect((await server.ask('POST', `/v1/sessions/${ID}/wake`, { body: {} })).status).toBe(409)
    const receipt = await server.json<WireReceipt>('POST', `/v1/sessions/${ID}/messages`, { body: { input: 'Hurry.' } })
    expect(receipt.elsewhere).toBe(card.elsewhere)
    const { events } = await server.json<EventsAnswer>('GET', `/v1/sessions/${ID}/events`)
    expect(events.map(({ type }) => type)).not.toContain('run.settled')
    expect(events.filter(({ type }) => type === 'model.started')).toHaveLength(1)
    expect(provider.requests).toHaveLength(0)
    expect(restarted()).toEqual({ status: 'completed', text: 'The invoice is paid.' })
    expect(readFileSync(place().journal, 'utf8')).toBe('hang A-7\nwork A-7\n')
    server.child.kill('SIGTERM')
    await server.ended
  })

  it('B-DRIVES-9: is driven by no command', async () => {
    const provider = await scriptedBy([{ text: 'I am another agent.' }])
    await stage.terret('list')
    await killed()
    const lines = [
      ['worker', '--idle'],
      ['resume', ID],
      ['wake', ID],
      ['run', '--continue', '--session', ID, 'Go on.'],
      ['compact', ID],
      ['undo', ID],
    ]
    for (const line of lines) {
      const { code, err } = await stage.apart(...line)
      const isSaid = err.includes('waits for a worker of agent "default" of the program that opened it')
      expect([line[0], isSaid, code]).toEqual([line[0], true, line[0] === 'worker' ? 0 : 9])
    }
    const shown = await stage.terret('inspect', ID)
    expect(shown.out).toContain('Driven    It waits for a worker of agent "default"')
    expect((await stage.terret('list')).err).toContain('No worker of this program drives')
    expect(provider.requests).toHaveLength(0)
    expect(restarted()).toEqual({ status: 'completed', text: 'The invoice is paid.' })
  })

  it('B-DRIVES-10: `terret serve --no-drive` opens and records, and drives nothing', async () => {
    const provider = await scriptedBy([{ text: 'Hello.' }])
    const server = await serving(stage, '--no-drive')
    expect(await server.json('GET', '/v1/health')).toMatchObject({ drives: false })
    const opened = await server.json<{ readonly session: string; readonly receipt: WireReceipt }>(
      'POST',
      '/v1/sessions',
      {
        body: { input: 'Hi.' },
      },
    )
    expect(opened.receipt.elsewhere).toContain('This server drives no sessions.')
    const refused = await server.ask('POST', `/v1/sessions/${opened.session}/wake`, { body: {} })
    expect([refused.status, refused.text]).toEqual([409, expect.stringContaining('session_elsewhere')])
    expect(provider.requests).toHaveLength(0)
    await stage.apart('worker', '--idle')
    const { card } = await server.json<SessionAnswer>('GET', `/v1/sessions/${opened.session}`)
    expect(card.outcome).toBe('completed')
    server.child.kill('SIGTERM')
    await server.ended
  })
})
