// Look an order up, refund it after a yes, and the yes is delivered twice: with LangGraph.js.
// It needs: npm install @langchain/langgraph@1.2.9 @langchain/core@1.2.13
import { Annotation, Command, END, MemorySaver, START, StateGraph, interrupt } from '@langchain/langgraph'

const paid = []
const asked = []
const State = Annotation.Root({ order: Annotation(), found: Annotation(), answer: Annotation() })

/** The node that asks. What stands before `interrupt` runs again when the graph goes on. */
function refund({ order }) {
  asked.push(order)
  const yes = interrupt({ tool: 'refund', args: { order } })
  if (!yes) return { answer: 'I may not pay it back.' }
  paid.push(order)
  return { answer: `Order ${order} is paid back.` }
}
const graph = new StateGraph(State)
  .addNode('look_up', () => ({ found: 'A lamp, 40.00.' }))
  .addNode('refund', refund)
  .addEdge(START, 'look_up')
  .addEdge('look_up', 'refund')
  .addEdge('refund', END)
  .compile({ checkpointer: new MemorySaver() })

// The question. The checkpointer keeps the state, by the id of the thread.
const thread = { configurable: { thread_id: 'order-17' } }
const first = await graph.invoke({ order: 17 }, thread)
const [question] = first.__interrupt__
console.log('asked:', question.value.tool, JSON.stringify(question.value.args))

// The yes. It is delivered twice.
const deliverYes = async () => (await graph.invoke(new Command({ resume: true }), thread)).answer
console.log('first yes:', await deliverYes())
console.log('second yes:', await deliverYes())
console.log('paid:', paid.length, 'asked:', asked.length)
