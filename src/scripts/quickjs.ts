// The engine's packages, for a thread that loads them. In the built package this is a file of its own.
import type { QuickJSSyncVariant } from 'quickjs-emscripten-core'
import release from '@jitl/quickjs-wasmfile-release-sync'

export { newQuickJSWASMModuleFromVariant, newVariant } from 'quickjs-emscripten-core'
/** The types of the package are those of its CommonJS form, which has one more level. */
export const variant = release as unknown as QuickJSSyncVariant
