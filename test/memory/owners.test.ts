// Memory belongs to an owner: what sessions of one person taught an agent is told to no other person's, unless somebody shared it.
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { chatHandler } from '../../src/ui/index.ts'
import { saidIn } from '../runtime/hooks-stage.ts'
import { learns, place, staged } from './stage.ts'

const vpn = { kind: 'lesson', title: 'Deploys need the VPN', detail: 'Staging deploys fail without it.' } as const
const QUESTION = 'Please deploy the staging server with the VPN.'

async function ask(here: ReturnType<typeof place>, owner: string | null): Promise<string> {
  const { harness, requests } = staged(here, ['ok'])
  const session = await harness.open(owner === null ? {} : { metadata: { owner } })
  await session.run(QUESTION)
  return saidIn(requests[0]).join('\n')
}

async function teach(here: ReturnType<typeof place>, owner: string | null, learning: typeof vpn = vpn): Promise<void> {
  const { harness } = staged(here, [learns(learning), 'Deployed.'])
  const session = await harness.open(owner === null ? {} : { metadata: { owner } })
  await session.run('Deploy to staging.')
}

describe('memory of several owners', () => {
  it('B-OWNER-1: what sessions of one owner taught is recalled by theirs and by nobody else’s', async () => {
    const here = place()
    await teach(here, 'ann')
    expect(await ask(here, 'ann')).toContain(vpn.title)
    expect(await ask(here, 'bob')).not.toContain(vpn.title)
    expect(await ask(here, null)).not.toContain(vpn.title)
    await teach(here, null, { ...vpn, title: 'Nobody’s VPN' as typeof vpn.title })
    expect(await ask(here, 'bob')).not.toContain('Nobody’s VPN')
    expect(await ask(here, null)).toContain('Nobody’s VPN')
  })

  it('B-OWNER-2: the same learning of two owners is two, and forgetting one leaves the other', async () => {
    const here = place()
    for (const owner of ['ann', 'bob']) await teach(here, owner)
    const [own] = await here.memory.list('default', { owner: 'ann' })
    await expect(here.memory.forget('default', own?.id ?? '', { owner: 'bob' })).rejects.toMatchObject({
      code: 'invalid_input',
    })
    await here.memory.forget('default', own?.id ?? '', { owner: 'ann' })
    expect(await here.memory.list('default', { owner: 'ann' })).toEqual([])
    expect(await here.memory.list('default', { owner: 'bob' })).toMatchObject([{ title: vpn.title, owner: 'bob' }])
    await teach(here, 'ann')
    expect(await ask(here, 'ann')).not.toContain(vpn.title)
  })

  it('B-OWNER-3: what a person shares is told to all owners, also after the file is made again', async () => {
    const here = place()
    await teach(here, 'ann')
    const [own] = await here.memory.list('default', { owner: 'ann' })
    await here.memory.share('default', own?.id ?? '', { owner: 'ann' })
    expect(await ask(here, 'bob')).toContain(vpn.title)
    await here.memory.close()
    for (const end of ['', '-wal', '-shm']) rmSync(`${here.file}${end}`, { force: true })
    const { openMemory } = await import('../../src/memory/index.ts')
    const again = openMemory({ file: here.file, store: here.store })
    expect(await again.recall('default', QUESTION, { owner: 'bob' })).toMatchObject([{ title: vpn.title }])
    await again.close()
  })

  it('B-OWNER-4: all that an owner taught is listed and taken out at once', async () => {
    const here = place()
    await teach(here, 'ann')
    await teach(here, 'ann', { ...vpn, title: 'A second VPN rule' as typeof vpn.title })
    await teach(here, 'bob')
    expect(await here.memory.list('default', { owner: 'ann' })).toHaveLength(2)
    expect(await here.memory.forgetOwner('ann')).toBe(2)
    expect(await here.memory.list('default', { owner: 'ann' })).toEqual([])
    expect(await here.memory.list('default', { owner: 'bob' })).toHaveLength(1)
  })

  it('B-OWNER-5: promotion takes those of one owner, and MEMORY.md may be one for each', async () => {
    const here = place()
    await teach(here, 'ann', { ...vpn, promote: true } as unknown as typeof vpn)
    const file = join(here.dir, '..', 'MEMORY.md')
    expect(await here.memory.promote('default', { file })).toEqual([])
    expect(existsSync(file)).toBe(false)
    expect(await here.memory.promote('default', { file, owner: 'ann' })).toHaveLength(1)
    const { harness, requests } = staged(here, ['ok', 'ok'], {
      recall: { file: (owner) => (owner === 'ann' ? file : undefined), minScore: 1 },
    })
    for (const owner of ['bob', 'ann']) await (await harness.open({ metadata: { owner } })).run('Anything else?')
    expect(saidIn(requests[0]).join('\n')).not.toContain(vpn.title)
    expect(saidIn(requests[1]).join('\n')).toContain(vpn.title)
  })

  it('B-OWNER-6: a session that a chat page opens belongs to the person of the request', async () => {
    const here = place()
    const { harness } = staged(here, ['Hello.'])
    const chat = chatHandler(harness, { by: () => 'ann' })
    const messages = [{ id: 'm1', role: 'user', parts: [{ type: 'text', text: 'Hi' }] }]
    const body = JSON.stringify({ id: 'chat-1', messages, trigger: 'submit-message' })
    const request = new Request('http://localhost/api/chat', {
      method: 'POST',
      body,
      headers: { 'content-type': 'application/json' },
    })
    expect(await (await chat(request)).text()).toContain('Hello')
    expect(await here.memory.ownerOf('chat-1')).toBe('ann')
  })

  it('B-OWNER-7: no text file that memory writes holds a control character', async () => {
    const here = place()
    const odd = {
      ...vpn,
      title: 'Red \u001b[31m and \u202e reversed' as typeof vpn.title,
      detail: 'a\u0007b\u009bc' as typeof vpn.detail,
    }
    const { harness } = staged(here, [learns(odd), 'Said \u001b[2J and \u202e.'])
    const { sessionId } = await harness.run('Deploy \u001b]0;x\u0007.')
    const file = join(here.dir, '..', 'MEMORY.md')
    const [one] = await here.memory.list('default')
    await here.memory.promote('default', { file, ids: [one?.id ?? ''] })
    const { runtimeFolder, writeRuntimeFiles } = await import('../../src/memory/index.ts')
    await writeRuntimeFiles(here.store, sessionId, here.dir)
    const folder = runtimeFolder(sessionId, here.dir)
    for (const path of [
      file,
      ...['session-state.md', 'working-buffer.md', 'checkpoint.json'].map((each) => join(folder, each)),
    ])
      expect([path, readFileSync(path, 'utf8')]).toEqual([path, expect.not.stringMatching(/(?![\n\t])\p{Cc}|\p{Cf}/u)])
  })
})
