// The public entry `terret/ui`: the server side of the AI SDK's `useChat` and of AG-UI clients, fed from a session's
// stream.
export { agUiHandler, agUiResponse } from './ag-ui.ts'
export { chatHandler } from './chat-handler.ts'
export type { PageApproval } from './page-approval.ts'
export { type Handler, nodeListener } from './ui-http.ts'
export type { Person, UiOptions } from './person.ts'
export { type UiMessage, uiMessageResponse, uiMessageResume, uiMessages, type UiPart } from './ui-message.ts'
