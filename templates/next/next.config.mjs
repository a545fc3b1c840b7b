// terret loads a native SQLite and files beside its code by their paths, where a bundler does not see them.
const loaded = ['terret', '@photostructure/sqlite', 'node-gyp-build']

export default {
  // They stay out of the bundle.
  serverExternalPackages: ['terret'],
  // With `output: 'standalone'`, as in a container, they are copied only if they are named.
  outputFileTracingIncludes: { '/**': loaded.map((name) => `./node_modules/${name}/**/*`) },
}
