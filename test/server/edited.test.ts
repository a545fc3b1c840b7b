// Edited arguments over the wire: the route and the client, MCP is test/mcp, pages are test/ui. On a real server.
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { connect } from '../../src/client/index.ts'
import { defineTool } from '../../src/index.ts'
import { agUiHandler, chatHandler } from '../../src/ui/index.ts'
import { pageApprovalsIn } from '../../src/ui/page-approval.ts'
import { make } from '../runtime/scene.ts'
import { until } from '../until.ts'
import { served } from './served.ts'

const asked = { to: 'ann', cents: 500 }
const edited = { to: 'ann', cents: 50 }

function payer(ran: unknown[]) {
  return defineTool({
    name: 'pay',
    description: 'Pays.',
    input: z.object({ to: z.string(), cents: z.number() }),
    effect: 'once',
    approval: 'ask',
    execute: (args) => {
      ran.push(args)
      return 'paid'
    },
  })
}
const script = [{ calls: [{ tool: 'pay', args: asked }] }, 'Done.']

describe('an edit over the wire', () => {
  it('B-EDITED-14: the client hands back what was shown with other arguments, and a lost answer is the same decision', async () => {
    const ran: unknown[] = []
    const one = await served(script, { harness: { tools: [payer(ran)] } })
    const session = await connect({ url: one.server.url, token: one.tokens.own }).open()
    await session.send('Pay.')
    await session.run()
    const [call] = (await session.status()).pending
    const shown = { ...call!, allow: true }
    await expect(session.decide({ ...shown, args: { to: 5 } })).rejects.toMatchObject({ code: 'invalid_input' })
    await expect(session.decide({ ...shown, tool: 'refund' })).rejects.toMatchObject({ code: 'decision_stale' })
    await expect(session.decide({ ...shown, class: 'other', args: edited })).rejects.toMatchObject({
      code: 'decision_stale',
    })
    const { seq } = await session.decide({ ...shown, args: edited })
    expect(await session.decide({ ...shown, args: edited })).toMatchObject({ seq, duplicate: true })
    await expect(session.decide({ ...shown, args: { ...edited, cents: 7 } })).rejects.toMatchObject({
      code: 'decision_stale',
    })
    await expect(session.decide({ ...shown })).rejects.toMatchObject({ code: 'decision_stale' })
    expect(await session.run()).toMatchObject({ status: 'completed' })
    expect(ran).toEqual([edited])
  })

  it.each([
    [
      'AG-UI',
      (id: string, session: string) => ({
        threadId: session,
        runId: 'r',
        messages: [],
        resume: [{ interruptId: id, status: 'resolved', payload: { approved: true, editedArgs: edited } }],
      }),
    ],
    [
      'the chat of the AI SDK',
      (id: string, session: string) => ({
        id: session,
        messages: [
          {
            id: 'm',
            role: 'assistant',
            parts: [
              { type: 'step-start' },
              {
                type: 'tool-pay',
                toolCallId: 'x',
                state: 'approval-responded',
                approval: { id, approved: true, editedArgs: edited },
              },
            ],
          },
        ],
      }),
    ],
  ] as const)('B-EDITED-15: editedArgs of %s are what runs, and the page is told of them', async (name, bodyOf) => {
    const ran: unknown[] = []
    const harness = make(script, { tools: [payer(ran)] })
    const session = harness.session((await harness.run('Pay.')).sessionId)
    const [approval] = pageApprovalsIn((await session.status()).pending, session.id)
    const handle =
      name === 'AG-UI' ? agUiHandler(harness, { by: () => 'bob' }) : chatHandler(harness, { by: () => 'bob' })
    const body = JSON.stringify(bodyOf(approval?.id ?? '', session.id))
    const headers = { 'content-type': 'application/json' }
    const response = await handle(new Request('http://page/', { method: 'POST', body, headers }))
    const told = await response.text()
    await until(() => expect(ran).toEqual([edited]))
    expect(told).toContain('"cents":50')
    expect(told.match(/approval-request|terret\.approval/g)).toBeNull()
    const { events } = await session.events()
    expect(events.find(({ type }) => type === 'user.tool_confirmation')).toMatchObject({
      by: 'bob',
      edit: { args: edited },
    })
  })
})
