// The engine's packages, for a thread that loads them. In the built package this is a file of its own.
export { newQuickJSWASMModuleFromVariant, newVariant } from 'quickjs-emscripten-core'
export { default as variant } from '@jitl/quickjs-wasmfile-release-sync'
