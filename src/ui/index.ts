// User interfaces as one import: the server side of the AI SDK's `useChat` and of AG-UI clients, from the stream of a session.
export { agUiHandler, agUiResponse } from './ag-ui.ts'
export { chatHandler } from './chat.ts'
export type { Approval } from './approval.ts'
export { type Handler, nodeListener } from './http.ts'
export type { Person, UiOptions } from './person.ts'
export { type UiMessage, uiMessageResponse, uiMessageResume, uiMessages, type UiPart } from './ui-message.ts'
