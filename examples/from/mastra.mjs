// Look an order up, refund it after a yes, and the yes is delivered twice: with Mastra. Node 22.13 or newer.
// It needs: npm install @mastra/core@1.71.0 zod
import { Mastra } from '@mastra/core'
import { createStep, createWorkflow } from '@mastra/core/workflows'
import { InMemoryStore } from '@mastra/core/storage'
import { z } from 'zod'

const paid = []
const order = z.object({ order: z.number() })
const answer = z.object({ answer: z.string() })
const lookUp = createStep({
  id: 'look_up',
  inputSchema: order,
  outputSchema: order,
  execute: async ({ inputData }) => inputData,
})
const refund = createStep({
  id: 'refund',
  inputSchema: order,
  outputSchema: answer,
  resumeSchema: z.object({ yes: z.boolean() }),
  suspendSchema: z.object({ tool: z.string(), args: order }),
  execute: async ({ inputData, resumeData, suspend }) => {
    if (resumeData === undefined) return suspend({ tool: 'refund', args: inputData })
    if (!resumeData.yes) return { answer: 'I may not pay it back.' }
    paid.push(inputData.order)
    return { answer: `Order ${inputData.order} is paid back.` }
  },
})
const workflow = createWorkflow({ id: 'refunds', inputSchema: order, outputSchema: answer })
  .then(lookUp)
  .then(refund)
  .commit()
const mastra = new Mastra({ workflows: { refunds: workflow }, storage: new InMemoryStore(), logger: false })

// The question. The storage keeps the run, by its id.
const refunds = mastra.getWorkflow('refunds')
const first = await (await refunds.createRun({ runId: 'order-17' })).start({ inputData: { order: 17 } })
const { tool, args } = first.steps.refund.suspendPayload
console.log('asked:', tool, JSON.stringify(args))

// The yes. It is delivered twice.
async function deliverYes() {
  const run = await refunds.createRun({ runId: 'order-17' })
  const { result } = await run.resume({ step: 'refund', resumeData: { yes: true } })
  return result.answer
}
console.log('first yes:', await deliverYes())
console.log('second yes:', await deliverYes().catch(({ message }) => message))
console.log('paid:', paid.length)
