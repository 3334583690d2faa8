;; A proxy-wasm filter that traps on a request with more than 20 headers and continues every other.
(module
  (memory (export "memory") 1)
  (func (export "proxy_abi_version_0_2_1"))
  (func (export "proxy_on_memory_allocate") (param $size i32) (result i32) (i32.const 1024))
  (func (export "proxy_on_vm_start") (param $root i32) (param $size i32) (result i32) (i32.const 1))
  (func (export "proxy_on_configure") (param $root i32) (param $size i32) (result i32) (i32.const 1))
  (func (export "proxy_on_context_create") (param $context i32) (param $parent i32))
  (func (export "proxy_on_delete") (param $context i32))
  (func (export "proxy_on_request_headers")
    (param $context i32) (param $headers i32) (param $end i32) (result i32)
    (if (i32.gt_u (local.get $headers) (i32.const 20)) (then unreachable))
    (i32.const 0)))
