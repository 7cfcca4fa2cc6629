# ruff: noqa: E501 - what tools print is as wide as it is
"""Memory that ran out, in the words of tools other than torch's allocator, kernel and launchers."""

import pytest
from pydantic import ValidationError

from trainwright.diagnose.memory_remedies import help_for
from trainwright.diagnose.outofmemory import explain
from trainwright.diagnose.outofmemory.forms import FORMS, Entry
from trainwright.diagnose.outofmemory.read import ONE_ERROR
from trainwright.messages import LANGUAGES, render
from trainwright.messages.catalogue import known

GIB, MIB = 1 << 30, 1 << 20
TF_GPU = "ResourceExhaustedError: OOM when allocating tensor with shape[32,512,512,64] and type float on /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc"
TOOLS = {
    "ComfyUI": ("torch.OutOfMemoryError: Allocation on device \nGot an OOM, unloading all loaded models.", "driver", "driver", None),
    "ROCm": ("RuntimeError: HIP error: out of memory\nHIP kernel errors might be asynchronously reported", "driver", "driver", None),
    "torch 2.9 and later": ("torch.AcceleratorError: CUDA error: out of memory\nSearch for `cudaErrorMemoryAllocation' in", "driver", "driver", None),
    "cuDNN": ("RuntimeError: cuDNN error: CUDNN_STATUS_ALLOC_FAILED", "driver", "library", None),
    "NCCL in its log": ("node01:42:43 [0] include/alloc.h:99 NCCL WARN Cuda failure 'out of memory'", "driver", "nccl", None),
    "Metal, one buffer": ("RuntimeError: Invalid buffer size: 14.50 GiB", "too-big", "buffer-limit-asked", 15569256448),
    "Metal, MLX and llama.cpp": ("error: Insufficient Memory (00000008:kIOGPUCommandBufferCallbackErrorOutOfMemory)", "driver", "driver", None),
    "transformers": ("ValueError: Some modules are dispatched on the CPU or the disk. Make sure you have enough GPU RAM to fit the quantized model.", "too-big", "dispatched", None),
    "accelerate": ("RuntimeError: No executable batch size found, reached zero.", "too-big", "no-batch", None),
    "bitsandbytes in a wheel": ("Error out of memory at line 97 in file /src/csrc/pythonInterface.cpp", "driver", "bitsandbytes", None),
    "XLA": ("XlaRuntimeError: RESOURCE_EXHAUSTED: Failed to allocate request for 2.00GiB (2147483648B) on device ordinal 0", "too-big", "driver-asked", 2147483648),
    "TensorFlow": (TF_GPU, "too-big", "driver-asked", 2147483648),
    "TensorFlow's driver": ("cuda_driver.cc:794] failed to allocate 10.75G (11542724608 bytes) from device: CUDA_ERROR_OUT_OF_MEMORY: out of memory", "too-big", "driver-asked", 11542724608),
    "TensorFlow's allocator": ("Allocator (GPU_0_bfc) ran out of memory trying to allocate 256.00MiB (rounded to 268435456)requested by op Conv2D", "too-big", "driver-asked", 268435456),
    "TensorRT": ("[TRT] [W] Requested amount of GPU memory (8589934592 bytes) could not be allocated.", "too-big", "driver-asked", 8589934592),
    "TensorRT-LLM": ("[TensorRT-LLM][ERROR] CUDA runtime error in ::cudaMallocAsync(ptr, n, mCudaStream->get()): out of memory (tllmBuffers.h:111)", "driver", "driver", None),
    "ONNX Runtime": ("onnxruntime::BFCArena::AllocateRawInternal(size_t, bool) Failed to allocate memory for requested buffer of size 536870912", "too-big", "driver-asked", 536870912),
    "ONNX Runtime's CUDA": ("CUDA failure 2: out of memory ; GPU=0 ; hostname=node01 ; expr=cudaMalloc((void**)&p, size);", "driver", "driver", None),
    "Paddle": ("Out of memory error on GPU 0. Cannot allocate 256.000000MB memory on GPU 0, 7.5GB memory has been allocated", "too-big", "driver-asked", 268435456),
    "vLLM, context": ("ValueError: The model's max seq len (32768) is larger than the maximum number of tokens that can be stored in KV cache (14512).", "cache", "cache-context", None),
    "vLLM, warm-up": ("RuntimeError: CUDA out of memory occurred when warming up sampler with 1024 dummy requests. Please try lowering `max_num_seqs`", "cache", "warm-up", None),
    "vLLM, preemption": ("Sequence group 0 is preempted by PreemptionMode.RECOMPUTE mode because there is not enough KV cache space.", "cache", "cache-busy", None),
    "SGLang": ("RuntimeError: Prefill out of memory. Try to lower your batch size.\nTry to allocate 5120 tokens.", "cache", "cache-busy", None),
    "llama.cpp, Vulkan": ("ggml_vulkan: Device memory allocation of size 1073741824 failed.\nggml_vulkan: vk::Device::allocateMemory: ErrorOutOfDeviceMemory", "too-big", "engine-asked", 1073741824),
    "llama.cpp, model": ("llama_model_load: error loading model: unable to allocate CUDA0 buffer", "too-big", "engine", None),
    "Ollama": ("Error: llama runner process has terminated: cudaMalloc failed: out of memory", "too-big", "engine", None),
    "kernel, whole computer": ("Out of memory: Killed process 42 (python) total-vm:98765432kB, anon-rss:62914560kB, file-rss:1024kB", "host", "kernel-held", None),
    "kernel, container": ("Memory cgroup out of memory: Killed process 42 (python3) total-vm:98765432kB, anon-rss:62914560kB, file-rss:1kB", "host", "container-held", None),
    "kernel before 5": ("[ 1234.567] Out of memory: Kill process 4242 (python) score 912 or sacrifice child", "host", "kernel", None),
    "kernel, who asked": ("python invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0", "host", "kernel", None),
    "Slurm": ("slurmstepd: error: Detected 1 oom-kill event(s) in StepId=123.batch.", "host", "container", None),
    "Slurm's srun": ("srun: error: node01: task 0: Out Of Memory", "host", "container", None),
    "kubectl": ("command terminated with exit code 137", "host", "killed", None),
    "docker compose": ("train-1 exited with code 137", "host", "killed", None),
    "Ray": ("ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.", "host", "ray", None),
    "Windows": ("OSError: [WinError 8] Not enough memory resources are available to process this command", "host", "host", None),
    "systemd-oomd": ("systemd-oomd[812]: Killed /user.slice/user-1000.slice/user@1000.service/app.slice/vte-spawn-2b.scope due to memory pressure for /user.slice being 71.20% > 50.00% for > 20s with reclaim activity", "host", "oomd", None),
    "earlyoom": ('earlyoom[812]: sending SIGTERM to process 4242 uid 1000 "python": badness 1240, VmRSS 60012 MiB', "host", "oomd", None),
    "zsh": ("  5%|1 | 12/240 [00:31<09:51,  2.59s/it]\nzsh: killed     python train.py", "host", "killed", None),
    "zsh, a job": ("[1]    48211 killed     python3 finetune.py", "host", "killed", None),
    "bash, a job": ("[1]+  Killed                  python train.py", "host", "killed", None),
    "NumPy, hundreds of GiB": ("numpy._core._exceptions._ArrayMemoryError: Unable to allocate 298. GiB for an array with shape (200000, 200000) and data type float64", "host", "host-asked", 319975063552),
    "cuDNN 9, host": ("RuntimeError: cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED", "host", "host", None),
    "cuDNN 9, device": ("RuntimeError: cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED", "driver", "library", None),
    "Colab": ("Your session crashed after using all available RAM.", "host", "notebook", None),
    "Kaggle": ("Your notebook tried to allocate more memory than is available. It has restarted.", "host", "notebook", None),
    "Arrow": ("pyarrow.lib.ArrowMemoryError: malloc of size 268435456 failed", "host", "host-asked", 268435456),
    "llama.cpp, processor": ("ggml_backend_cpu_buffer_type_alloc_buffer: failed to allocate buffer of size 17179869184\nllama_model_load: error loading model: unable to allocate CPU buffer", "host", "host-asked", 17179869184),
    "TensorFlow, processor": (TF_GPU.replace("GPU", "CPU"), "host", "host", None),
    "torch's tensors in shared memory": ("RuntimeError: unable to allocate shared memory(shm) for file </torch_4242_123_4>: Resource temporarily unavailable (11)", "shared-memory", "shared-memory", None),
    "NCCL in a container": ("misc/shmutils.cc:72 NCCL WARN Error: failed to extend /dev/shm/nccl-ieP0kL to 33030532 bytes", "shared-memory", "nccl-shared", None),
    "Triton": ("triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 135168, Hardware limit: 101376. Reducing block sizes", "kernel", "kernel-limit", None),
    "Inductor": ("torch._inductor.exc.InductorError: RuntimeError: No valid triton configs. OutOfMemoryError: out of resource: triton_per_fused_add_native_layer_norm_0 Required: 131072 Hardware limit: 101376 Reducing block sizes or `num_stages` may help.", "kernel", "kernel-limit", None),
    "TensorRT-LLM, one block": ("[TensorRT-LLM][ERROR] Assertion failed: Can't allocate even one KV cache block for window size 8192 (/src/tensorrt_llm/cpp/tensorrt_llm/batch_manager/kvCacheManager.cpp:612)\nRuntimeError: Executor worker returned error", "cache", "cache", None),
    "turbomind": ("RuntimeError: [TM][ERROR]  CUDA runtime error: out of memory /lmdeploy/src/turbomind/utils/allocator.h:246", "driver", "driver", None),
    "MindSpore": ("RuntimeError: Device(id:0) memory isn't enough and alloc failed, kernel name: Default/MatMul, alloc size: 1073741824B.", "too-big", "driver-asked", 1073741824),
    "MLX, one buffer": ("RuntimeError: [metal::malloc] Attempting to allocate 34359738368 bytes which is greater than the maximum allowed buffer size of 22906503168 bytes.", "too-big", "buffer-limit-asked", 34359738368),
    "NCCL's calloc": ("torch.distributed.DistBackendError: NCCL error in: NCCLUtils.cpp:77, unhandled cuda error (run with NCCL_DEBUG=INFO for details), NCCL version 2.26.2\nncclUnhandledCudaError: Call to CUDA function failed.\nLast error:\nFailed to CUDA calloc async 608 bytes", "driver", "nccl", None),
    "PBS": ("=>> PBS: job killed: mem 67108864kb exceeded limit 33554432kb", "host", "container", None),
    "PBS, time": ("=>> PBS: job killed: walltime 3610 exceeded limit 3600", "other", "other-time-limit", None),
    "Grid Engine": ("job 12345.1 exceeded hard wallclock time - initiate terminate method", "other", "other-time-limit", None),
    "LM Studio": ("Failed to load the model. Model loading was stopped due to insufficient system resources. Under the current settings, this model requires approximately 45.12 GB of memory", "host", "host-asked", 48447231098),
    "XLA, pinned": ("cuda_driver.cc:1001] failed to alloc 2147483648 bytes on host: CUDA_ERROR_OUT_OF_MEMORY: out of memory", "host", "pinned", None),
    "bash, behind a bar": ("Loading checkpoint shards:  67%|██████▋   | 2/3 [00:31<00:15, 15.62s/it]Killed", "host", "killed", None),
    "torch 1.13": ("RuntimeError: CUDA out of memory. Tried to allocate 1.53 GiB (GPU 0; 23.70 GiB total capacity; 20.10 GiB already allocated; 1.20 GiB free; 21.00 GiB reserved in total by PyTorch) If reserved memory is >> allocated memory try setting max_split_size_mb to avoid fragmentation.  See documentation for Memory Management and PYTORCH_CUDA_ALLOC_CONF", "fragmentation", "fragmentation", 1642824990),
    "torch wsl absurd": ("torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 256.00 MiB. GPU 0 has a total capacity of 8.00 GiB of which 0 bytes is free. Process 1234 has 17179869184.00 GiB memory in use. Of the allocated memory 6.90 GiB is allocated by PyTorch, and 120.00 MiB is reserved by PyTorch but unallocated.", "too-big", "too-big", 268435456),
    "absurd size": ("RuntimeError: CUDA out of memory. Tried to allocate 268435456.00 GiB (GPU 0; 15.90 GiB total capacity; 1.10 GiB already allocated; 13.90 GiB free; 1.20 GiB reserved in total by PyTorch)", "too-big", "computed", 288230376151711744),
    "big attention": ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1024.00 GiB. GPU 0 has a total capacity of 23.65 GiB of which 20.00 GiB is free. Including non-PyTorch memory, this process has 3.50 GiB memory in use. Of the allocated memory 3.00 GiB is allocated by PyTorch, and 20.00 MiB is reserved by PyTorch but unallocated.", "too-big", "computed", 1099511627776),
    "torch 0.4": ("RuntimeError: cuda runtime error (2) : out of memory at /opt/conda/conda-bld/pytorch_1532579805626/work/aten/src/THC/generic/THCStorage.cu:58", "driver", "driver", None),
    "NPU": ("RuntimeError: NPU out of memory. Tried to allocate 2.00 GiB (NPU 0; 60.97 GiB total capacity; 57.10 GiB already allocated; 57.10 GiB current active; 1.02 GiB free; 58.00 GiB reserved in total by PyTorch)", "too-big", "too-big", 2147483648),
    "XPU UR": ("RuntimeError: level_zero backend failed with error: 39 (UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY)", "driver", "driver", None),
    "XPU PI": ("RuntimeError: Native API failed. Native API returns: -5 (PI_ERROR_OUT_OF_RESOURCES) -5 (PI_ERROR_OUT_OF_RESOURCES)", "driver", "driver", None),
    "DirectML": ("RuntimeError: Could not allocate tensor with 1073741824 bytes. There is not enough GPU video memory available!", "too-big", "driver-asked", 1073741824),
    "MPS MiB": ("RuntimeError: MPS backend out of memory (MPS allocated: 8.50 GiB, other allocations: 384.00 KiB, max allowed: 9.07 GiB). Tried to allocate 1.25 GiB on private pool. Use PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0 to disable upper limit for memory allocations (may cause system failure).", "too-big", "mps", 1342177280),
    "cudnn engine": ("RuntimeError: GET was unable to find an engine to execute this computation", "driver", "library-likely", None),
    "cudnn algo": ("RuntimeError: Unable to find a valid cuDNN algorithm to run convolution", "driver", "library-likely", None),
    "cufft": ("RuntimeError: cuFFT error: CUFFT_ALLOC_FAILED", "driver", "library", None),
    "cusparse": ("RuntimeError: CUDA error: CUSPARSE_STATUS_INSUFFICIENT_RESOURCES when calling `cusparseSpMM(...)`", "driver", "library", None),
    "nccl timeout": ("[rank0]:[E ProcessGroupNCCL.cpp:616] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=120, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600031 milliseconds before timing out.\nterminate called after throwing an instance of 'c10::DistBackendError'\n", "other", "other-collective-timeout", None),
    "nccl system": ("torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/NCCLUtils.hpp:268, unhandled system error (run with NCCL_DEBUG=INFO for details), NCCL version 2.20.5\nncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error.", "other", "other-collective-error", None),
    "nccl dup": ("ncclInvalidUsage: This usually reflects invalid usage of NCCL library.\nLast error:\nDuplicate GPU detected : rank 1 and rank 0 both on CUDA device 81000", "other", "other-same-gpu", None),
    "assert": ("../aten/src/ATen/native/cuda/Indexing.cu:1308: indexSelectLargeIndex: block: [12,0,0], thread: [64,0,0] Assertion `srcIndex < srcSelectDimSize` failed.\nRuntimeError: CUDA error: device-side assert triggered\nCUDA kernel errors might be asynchronously reported at some other API call", "other", "other-device-assert", None),
    "illegal": ("torch.AcceleratorError: CUDA error: an illegal memory access was encountered\nSearch for `cudaErrorIllegalAddress' in https://docs.nvidia.com/cuda/", "other", "other-illegal-access", None),
    "rocm fault": ("Memory access fault by GPU node-1 (Agent handle: 0x55) on address 0x7f. Reason: Page not present or supervisor privilege.", "other", "other-illegal-access", None),
    "no kernel": ("RuntimeError: CUDA error: no kernel image is available for execution on the device", "other", "other-no-kernel", None),
    "sm120": ("NVIDIA GeForce RTX 5090 with CUDA capability sm_120 is not compatible with the current PyTorch installation.\nThe current PyTorch install supports CUDA capabilities sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_90.", "other", "other-no-kernel", None),
    "vllm bf16": ("ValueError: Bfloat16 is only supported on GPUs with compute capability of at least 8.0. Your Tesla T4 GPU has compute capability 7.5. You can use float16 instead by explicitly setting the `dtype` flag in CLI, for example: --dtype=half.", "other", "other-no-bf16", None),
    "transformers bf16": ("ValueError: Your setup doesn't support bf16/gpu. You need Ampere+ GPU with cuda>=11.0", "other", "other-no-bf16", None),
    "accelerate bf16": ("ValueError: bf16 mixed precision requires PyTorch >= 1.10 and a supported device.", "other", "other-no-bf16", None),
    "driver old": ("RuntimeError: The NVIDIA driver on your system is too old (found version 11040). Please update your GPU driver", "other", "other-old-driver", None),
    "not compiled": ("AssertionError: Torch not compiled with CUDA enabled", "other", "other-no-gpu", None),
    "busy": ("RuntimeError: CUDA error: all CUDA-capable devices are busy or unavailable", "other", "other-gpu-exclusive", None),
    "ecc": ("RuntimeError: CUDA error: uncorrectable ECC error encountered", "other", "other-gpu-fault", None),
    "xid 79, then the driver's error": ("[ 8123.112] NVRM: Xid (PCI:0000:41:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\nRuntimeError: CUDA error: unspecified launch failure", "other", "other-gpu-fault", None),
    "xid 48, double-bit error": ("NVRM: Xid (PCI:0000:41:00): 48, pid=4242, name=python, DBE (double bit error) ECC Error\nRuntimeError: CUDA error: an illegal memory access was encountered", "other", "other-gpu-fault", None),
    "xid 31, of the program": ("NVRM: Xid (PCI:0000:41:00): 31, pid=4242, name=python, Ch 00000008, intr 00000000. MMU Fault: ENGINE GRAPHICS GPCCLIENT_T1_0 faulted @ 0x7f_5a000000. Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_READ", "other", "other-illegal-access", None),
    "xid 13 and a wrong index": ("IndexKernel.cu:93: operator(): block: [0,0,0], thread: [1,0,0] Assertion `-sizes[i] <= index && index < sizes[i]` failed.\nNVRM: Xid (PCI:0000:41:00): 13, pid=4242, name=python, Graphics Exception: ESR 0x504730=0x10009", "other", "other-device-assert", None),
    "xid 43, after another fault": ("NVRM: Xid (PCI:0000:41:00): 43, pid=4242, name=python, Ch 00000008", "other", "other-gpu-fault", None),
    "xid": ("NVRM: Xid (PCI:0000:41:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.", "other", "other-gpu-fault", None),
    "errno28": ("OSError: [Errno 28] No space left on device: '/home/user/.cache/huggingface/hub/tmpabc'", "other", "other-disk", None),
    "errno28 shm": ("OSError: [Errno 28] No space left on device: '/dev/shm/torch_4242_1234'", "shared-memory", "shared-memory", None),
    "errno28 psm": ("  File \"/usr/lib/python3.11/multiprocessing/shared_memory.py\", line 121, in __init__\nOSError: [Errno 28] No space left on device: '/psm_8a1b2c3d'", "shared-memory", "shared-memory", None),
    "quota": ("OSError: [Errno 122] Disk quota exceeded", "other", "other-disk", None),
    "open files": ("RuntimeError: unable to open shared memory object </torch_4_1> in read-write mode: Too many open files (24)", "other", "other-open-files", None),
    "ancdata": ("RuntimeError: received 0 items of ancdata", "other", "other-open-files", None),
    "worker segv": ("RuntimeError: DataLoader worker (pid 4242) is killed by signal: Segmentation fault. ", "other", "other-segfault", None),
    "worker killed": ("RuntimeError: DataLoader worker (pid(s) 4242, 4243) exited unexpectedly", "worker", "worker", None),
    "pin thread": ('RuntimeError: Caught RuntimeError in pin memory thread for device 0.\nOriginal Traceback (most recent call last):\n  File "torch/utils/data/_utils/pin_memory.py", line 37, in do_one_step\n    return data.pin_memory(device)\nRuntimeError: CUDA error: out of memory', "host", "pinned", None),
    "segv shell": ("train.sh: line 3: 4242 Segmentation fault      (core dumped) python train.py", "other", "other-segfault", None),
    "vllm profile": ("AssertionError: Error in memory profiling. Initial free memory 20.10 GiB, current free memory 21.40 GiB. This happens when other processes sharing the same container release GPU memory while vLLM is profiling during initialization.", "other-programs", "others-changed", None),
    "vllm core": ("RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}", "other", "other-launcher", None),
    "vllm startup": ("ValueError: Free memory on device cuda:0 (10.02/23.57 GiB) on startup is less than desired GPU memory utilization (0.9, 21.21 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.", "other-programs", "other-programs", 22774064087),
    "sgl graph": ("Exception: Capture cuda graph failed: CUDA out of memory. Tried to allocate 1.00 GiB. GPU 0 has a total capacity of 79.25 GiB of which 0.50 GiB is free. Including non-PyTorch memory, this process has 78.70 GiB memory in use. Of the allocated memory 70.00 GiB is allocated by PyTorch, and 100.00 MiB is reserved by PyTorch but unallocated.\nPossible solutions:\n1. set --mem-fraction-static to a smaller value (e.g., 0.8 or 0.7)\n2. set --cuda-graph-max-bs to a smaller value (e.g., 16)\n3. disable torch compile", "cache", "graphs", None),
    "sgl unbalanced": ("ValueError: The memory capacity is unbalanced. Some GPUs may be occupied by other processes. pre_model_load_memory=44.0, local_gpu_memory=78.0, local_gpu_memory * 0.9=70.2", "other-programs", "others-changed", None),
    "tgi": ('Error: Warmup(Generation("Not enough memory to handle 4096 prefill tokens. You need to decrease `--max-batch-prefill-tokens`"))', "cache", "warm-up", None),
    "trtllm component": ("[TRT-LLM] [RANK 1] [E] Failed to initialize executor on rank 1: Executor creation failed due to insufficient GPU memory.\n\nThe following component could not be created: KV cache\nTotal GPU memory (GiB): 140.06\nFree GPU memory before component creation attempt (GiB): 108.86", "cache", "cache", None),
    "trt builder": ("[E] Error[2]: [virtualMemoryBuffer.cpp::resizePhysical::127] Error Code 2: OutOfMemory (no further information)", "too-big", "driver", None),
    "trt requested": ("[TRT] [E] 2: [executionContext.cpp] Error Code 2: OutOfMemory (Requested size was 2147483648 bytes.)", "too-big", "driver-asked", 2147483648),
    "llama compute": ("ggml_backend_cuda_buffer_type_alloc_buffer: allocating 8900.01 MiB on device 0: cudaMalloc failed: out of memory\nggml_gallocr_reserve_n: failed to allocate CUDA0 buffer of size 9332334592\nllama_new_context_with_model: failed to allocate compute buffers\nfree(): invalid pointer", "too-big", "engine-step-asked", 9332334592),
    "llama weights": ("ggml_backend_cuda_buffer_type_alloc_buffer: allocating 20000.00 MiB on device 0: cudaMalloc failed: out of memory\nalloc_tensor_range: failed to allocate CUDA0 buffer of size 20971520000\nllama_model_load: error loading model: unable to allocate CUDA0 buffer", "too-big", "engine-asked", 20971520000),
    "llama slot": ("decode: failed to find a memory slot for batch of size 512", "cache", "cache-busy", None),
    "llama ctx": ("srv  send_error: the request exceeds the available context size. try increasing the context size or enable context shift", "other", "other-context", None),
    "ollama killed": ("Error: llama runner process has terminated: signal: killed", "host", "killed", None),
    "exllama": ("RuntimeError: Insufficient VRAM in split for model and cache", "cache", "cache", None),
    "deepspeed 1": ("[2023-09-10 11:46:00,100] [ERROR] [launch.py:434:sigkill_handler] ['/opt/venv/bin/python', '-u', 'train.py'] exits with return code = 1", "other", "other-launcher", None),
    "lightning": ("[rank: 1] Child process with PID 4242 terminated with code -9. Forcefully terminating all other processes to avoid zombies", "host", "killed", None),
    "jax buffer": ("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 17179869184 bytes.\nBufferAssignment OOM Debugging.\nBufferAssignment stats:\n             parameter allocation:   10.00GiB\n", "too-big", "driver-asked", 17179869184),
    "jaxlib of 2019": ("E local_client.cc:672] Execution of replica 0 failed: Resource exhausted: Out of memory while trying to allocate 4831838208 bytes.", "too-big", "driver-asked", 4831838208),
    "tpu": ("jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory in memory space hbm. Used 21.95G of 15.48G hbm. Exceeded hbm capacity by 6.47G.", "too-big", "driver-sized", 23568633036),
    "tpu alloc": ("RESOURCE_EXHAUSTED: Attempting to allocate 3.82G. That was not possible. There are 3.71G free.; (0x0x0_HBM0)", "too-big", "driver-sized", 4101693767),
    "jax dnn": ("jaxlib.xla_extension.XlaRuntimeError: FAILED_PRECONDITION: DNN library initialization failed. Look at the errors above for more details.", "driver", "library-likely", None),
    "tf cudnn": ("E tensorflow/stream_executor/cuda/cuda_dnn.cc:329] Could not create cudnn handle: CUDNN_STATUS_INTERNAL_ERROR\nUnknownError: Failed to get convolution algorithm. This is probably because cuDNN failed to initialize", "driver", "library-likely", None),
    "win ko": ("OSError: [WinError 1455] 이 작업을 완료하기 위한 페이징 파일이 너무 작습니다.", "host", "page-file", None),
    "rust 1455": ("RuntimeError: The paging file is too small for this operation to complete. (os error 1455)", "host", "page-file", None),
    "colab": ("Your session crashed after using all available RAM. View runtime logs", "host", "notebook", None),
    "jupyter": ("The kernel for train.ipynb appears to have died. It will restart automatically.", "host", "died", None),
    "slurm old": ("slurmstepd: error: Exceeded step memory limit at some point.", "host", "container", None),
    "slurm seff": ("State: OUT_OF_MEMORY (exit code 0)", "host", "container", None),
    "slurm time": ("slurmstepd: error: *** JOB 123 ON node01 CANCELLED AT 2025-01-01T00:00:00 DUE TO TIME LIMIT ***", "other", "other-time-limit", None),
    "kubectl describe": ("    Last State:     Terminated\n      Reason:       OOMKilled\n      Exit Code:    137\n    Limits:\n      memory:          8Gi\n      nvidia.com/gpu:  1\n", "host", "container", None),
    "evicted": ("Status: Failed\nReason: Evicted\nMessage: The node was low on resource: memory. Threshold quantity: 100Mi, available: 60Mi. Container train was using 30Gi, request is 0", "host", "container", None),
    "evicted disk": ("Message: The node was low on resource: ephemeral-storage.", "other", "other-disk", None),
    "docker inspect true": ('"State": {"Status": "exited", "OOMKilled": true, "ExitCode": 137}', "host", "container", None),
    "dmesg": ("[12345.678] oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,task_memcg=/user.slice,task=python,pid=4242,uid=1000\n[12345.679] Out of memory: Killed process 4242 (python) total-vm:120000000kB, anon-rss:62914560kB, file-rss:0kB, shmem-rss:1024kB, UID:1000 pgtables:150000kB oom_score_adj:0", "host", "kernel-held", None),
    "ray": ("ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.\nMemory on the node (IP: 10.0.0.1, ID: x) where the task was running was 62.10GB / 64.00GB (0.970312), which exceeds the memory usage threshold of 0.95.", "host", "ray", None),
    "numpy": ("numpy.core._exceptions._ArrayMemoryError: Unable to allocate 29.8 GiB for an array with shape (200000, 20000) and data type float64", "host", "host-asked", 31997506355),
    "numpy absurd": ("numpy.core._exceptions._ArrayMemoryError: Unable to allocate 72.8 TiB for an array with shape (10000000, 1000000) and data type float64", "host", "computed", 80044446502092),
    "java": ("java.lang.OutOfMemoryError: Java heap space", "host", "java", None),
    "lsf": ("TERM_MEMLIMIT: job killed after reaching LSF memory usage limit.\nExited with exit code 137.", "host", "container", None),
    "bus exit": ("E0101 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: -7) local_rank: 0 (pid: 5) of binary: python\n  exitcode  : -7 (pid: 5)\n  traceback : Signal 7 (SIGBUS) received by PID 5", "shared-memory", "shared-memory", None),
}  # fmt: skip


@pytest.mark.parametrize("tool", TOOLS)
def test_memory_that_ran_out_in_the_words_of_each_tool(tool: str) -> None:
    text, kind, says, asked = TOOLS[tool]
    found = explain(f"step 10 of 100\n{text}\n")
    assert (found.kind, found.says.id, found.account.asked) == (kind, f"diagnose.oom.{says}", asked)
    fixes = help_for(found).fixes
    assert fixes or kind == "kernel"
    for language in LANGUAGES:
        sentences = (found.says, *(each.says for each in fixes))
        assert all("diagnose." not in render(each, language) for each in sentences)


def test_the_kernels_log_says_what_the_process_held() -> None:
    assert explain(TOOLS["kernel, container"][0]).account.process == 60 * GIB


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("RuntimeError: CUDA error: too many resources requested for launch", "other-resources"),
        ("OSError: [Errno 28] No space left on device", "other-disk"),
        (
            "RuntimeError: mat1 and mat2 shapes cannot be multiplied (32x768 and 512x10)",
            "other-error",
        ),
        (
            'Traceback (most recent call last):\n  File "a.py", line 3\nKeyboardInterrupt',
            "other-error",
        ),
        ("exited with code 1375, exit code: 1", "none"),
        ("out of memory is what this page is about", "none"),
        (
            "cpu_allocator_impl.cc:82] Allocation of 602112000 exceeds 10% of free system memory.",
            "none",
        ),
    ],
)
def test_other_errors_are_not_memory_that_ran_out(text: str, says: str) -> None:
    found = explain(text)
    assert found.kind == ("none" if says == "none" else "other")
    assert found.says.id == f"diagnose.oom.{says}"


@pytest.mark.parametrize(
    "text",
    [
        "OOM when allocating tensor with shape[,,,] and type float",
        "OOM when allocating tensor with shape[99999999999] and type string",
        "out of resource: shared memory, Required: many, Hardware limit: few",
        "Failed to allocate memory for requested buffer of size BFCArena::AllocateRawInternal",
        "Out of memory: Killed process 42 (python) anon-rss:kB",
        "ggml_vulkan: Device memory allocation of size  failed.",
        "Invalid buffer size: none GiB",
    ],
)
def test_sizes_that_are_cut_off_are_not_made_up(text: str) -> None:
    found = explain(text)
    assert (found.account.asked, found.account.process) == (None, None)
    assert render(found.says, "en")


FULL = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.65 GiB of which 1.02 GiB is free. Including non-PyTorch memory, this process has 22.60 GiB memory in use. Of the allocated memory 22.00 GiB is allocated by PyTorch, and 150.00 MiB is reserved by PyTorch but unallocated."
MIXED = "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!"
TIMEOUT = "[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=9, OpType=ALLREDUCE, Timeout(ms)=600000)"
STEPS = "".join(f"step {step} loss 2.1\n" for step in range(9))
KILLED = "train.sh: line 12: 31337 Killed                  python train.py"


def table(exit_code: int, other: int = -9) -> str:
    """Return what torchrun prints of two processes, the first of which failed first."""
    return f"""E0321 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: {exit_code}) local_rank: 0 (pid: 122) of binary: python
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
Failures:
[1]:
  exitcode  : {other} (pid: 123)
  traceback : Signal 9 (SIGKILL) received by PID 123
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  exitcode  : {exit_code} (pid: 122)
"""


@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param(f"{FULL}\n{table(1)}", "too-big", id="the GPU's error before torchrun's table"),
        pytest.param(f"{MIXED}\n{table(1)}", "other-devices", id="another error before the table"),
        pytest.param(f"ValueError: no such split\n{table(1)}", "other-error", id="any other error"),
        pytest.param(table(1), "other-launcher", id="the table alone"),
        pytest.param(table(-9, 1), "killed", id="a process that was ended first"),
        pytest.param(table(-11), "other-segfault", id="a crash, and others that were ended for it"),
        pytest.param(f"[rank1]: {FULL}\n{TIMEOUT}", "too-big", id="ranks that wait for one that ended"),
        pytest.param(f"{FULL}\n  3%| 10/300 [00:12<05:48,  1.20s/it]\n{KILLED}", "too-big", id="the last bar"),
        pytest.param(f"{FULL}\n{STEPS}{KILLED}", "killed", id="a training that went on"),
    ],
)  # fmt: skip
def test_the_first_error_explains_what_came_of_it(text: str, says: str) -> None:
    assert explain(text).says.id == f"diagnose.oom.{says}"


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(f"│ {FULL[at : at + 70]:70} │" for at in range(0, len(FULL), 70)),
        '"evalue": "' + FULL.replace(": CUDA", "\\u001b[0m: CUDA").replace(". ", ".\\n ") + '"',
        f"\x1b[36m(RayTrainWorker pid=42, ip=10.0.0.5)\x1b[0m {FULL}",
        "\n".join(f"(EngineCore pid=316) {FULL[at : at + 80]}" for at in range(0, len(FULL), 80)),
    ],
    ids=["rich's box", "a notebook's file", "Ray", "lines broken within words"],
)
def test_texts_are_read_in_the_frames_that_programs_put_around_them(text: str) -> None:
    found = explain(text)
    assert (found.account.asked, found.account.free) == (2 * GIB, int(1.02 * GIB))
    assert found.account.unused == 150 * MIB


def test_what_to_do_names_the_engines_own_settings() -> None:
    def advice(text: str) -> str:
        return " ".join(render(each.says, "en") for each in help_for(explain(text)).fixes)

    assert "61,440" in advice(
        "(16.00 GiB KV cache is needed, which is larger than the available KV cache memory (7.50 GiB). Based on the available memory, the estimated maximum model length is 61440."
    )
    assert "-c" in advice(
        "llama_init_from_model: failed to initialize the context: failed to allocate buffer for kv cache"
    )
    assert "num_ctx" in advice(
        "Error: model requires more system memory (17.5 GiB) than is available (13.1 GiB)"
    )
    loading = advice("Loading checkpoint shards:  0%| 0/7\nexits with return code = -9")
    assert "weights" in loading
    assert "workers" not in loading


def test_a_containers_limit_is_read() -> None:
    assert explain(TOOLS["kubectl describe"][0]).account.allowed == 8 * GIB


WATCHDOG = "[rank{0}]:[E ProcessGroupNCCL.cpp:616] [PG ID 0 PG GUID 0(default_pg) Rank {0}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={1}, OpType={2}, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600031 milliseconds before timing out.\n"


def advice(text: str) -> list[str]:
    return [render(each.says, "en") for each in help_for(explain(text)).fixes]


def test_a_timeout_names_the_call_and_the_ranks_that_waited_in_it() -> None:
    waited = "".join(WATCHDOG.format(rank, 120, "ALLREDUCE") for rank in (3, 0, 12))
    said = advice(waited + WATCHDOG.format(1, 119, "ALLGATHER"))
    assert "ALLREDUCE (SeqNum=120) until the limit of 10 min: 0, 3, 12." in said[0]
    assert "ALLGATHER (SeqNum=119) until the limit of 10 min: 1." in said[1]
    assert "min: 0." in advice(TIMEOUT)[0]  # whose rank is not a prefix
    assert len(advice(WATCHDOG.format(0, 120, "ALLREDUCE")[:150])) == 1


def test_what_one_rank_ran_into_goes_before_the_wait_of_the_others():
    assertion = "Indexing.cu:1289: block: [1,0,0], thread: [0,0,0] Assertion `srcIndex < srcSelectDimSize` failed.\n"
    waited = "".join(WATCHDOG.format(rank, 120, "ALLREDUCE") * 9 for rank in (0, 1, 2, 4, 5, 6, 7))
    assert len(waited) > 2 * ONE_ERROR
    assert explain(assertion + waited).says.id == "diagnose.oom.other-device-assert"
    went_on = "".join(f"{at}/900 [00:10<00:20, 1.2it/s]\n" for at in range(5))
    assert explain(assertion + went_on + waited).says.id == "diagnose.oom.other-collective-timeout"


def test_a_worker_that_was_killed_is_looked_up_in_the_kernels_log() -> None:
    killed = "RuntimeError: DataLoader worker (pid 1234) is killed by signal: Killed."
    assert "dmesg" in advice(killed)[0]
    assert "not the GPU's" in render(explain(killed).says, "en")


def test_the_table_of_errors_names_sentences_and_no_key_that_nobody_reads() -> None:
    for entry in (form.entry for part in FORMS.values() for form in part):
        named = [f"diagnose.fix.{each}" for each in (*entry.fixes, *entry.fixes_of)]
        named += [f"diagnose.oom.{entry.sized}"] if entry.sized else []
        assert [each for each in named if not known(each)] == []
        assert any(known(f"diagnose.oom.{entry.says}{size}") for size in ("", "-asked"))
    with pytest.raises(ValidationError, match="meaning"):
        Entry.model_validate({"words": ["x"], "says": "driver", "meaning": "x"})
